"""Alerts: rule files, their evaluation over the stored samples, and Alertmanager's API."""
