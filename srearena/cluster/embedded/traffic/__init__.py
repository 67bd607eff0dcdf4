"""Requests through applications, given the cluster as it is: flows, queues, caches, messages, and sampled walks."""
