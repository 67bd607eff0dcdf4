"""The write path of the cluster: decoding, defaults, admission, validation and storage of every write.

A client's request and a controller's own write meet the same decoding, defaulting, admission, validation, field
ownership and storage rules here. Nothing in this package knows of HTTP.
"""
