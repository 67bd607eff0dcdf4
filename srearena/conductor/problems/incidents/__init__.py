"""Incidents in files: problems that are described by a small YAML document instead of a class.

Such a file is accepted wherever an id of a problem is; see docs/incidents.md.
"""
