"""Tests, by behaviour; CONTRIBUTING.md says how to run them."""
