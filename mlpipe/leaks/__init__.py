"""What lets a test look better than the model is: settings, and pure functions that look at tables."""
