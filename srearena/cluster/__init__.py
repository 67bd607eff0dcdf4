"""Environments an incident can run in, behind one interface."""
