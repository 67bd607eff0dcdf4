"""Incidents in the view: running clusters, running episodes and recordings, in one form for the pages."""
