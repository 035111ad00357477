"""Training: batches, the loop, optimisers, checkpoints, weights."""
