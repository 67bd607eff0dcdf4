"""What things cost: `python -m benchmarks` runs all and compares with the runs before."""
