"""Finished jobs go when their time to live is over."""
