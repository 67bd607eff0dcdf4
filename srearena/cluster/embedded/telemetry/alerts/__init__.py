"""Alerts: rule files, what they say about the stored samples, and Alertmanager's view of it."""
