"""awk, as much of it as one uses: patterns, actions, arrays and the usual functions."""
