"""Benchmarks: ratios side by side in one run. `make bench` writes bench/RESULTS.md."""
