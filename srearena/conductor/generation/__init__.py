"""Generated incidents: candidates drawn from the catalogue's faults, each proven or discarded with its reason.

`space` draws candidates, `healthy_world` proves them on forks of one healthy system, `difficulty` measures them, and
`generator` does so in processes until enough are valid. See docs/incidents.md.
"""
