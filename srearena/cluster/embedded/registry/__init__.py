"""The write path of the cluster: what a request to change an object goes through, whoever sends it.

A client's request and a controller's own write meet the same decoding, defaulting, admission, validation, field
ownership and storage rules here. Nothing in this package knows of HTTP.
"""
