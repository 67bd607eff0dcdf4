"""Proofs that a problem is valid: `srearena verify` and what it checks."""
