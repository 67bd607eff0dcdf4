"""The node itself: its object, heartbeats, evictions, static pods and usage."""
