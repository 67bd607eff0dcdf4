"""Pods that nobody ends any more."""
