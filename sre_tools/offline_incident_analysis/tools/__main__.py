"""`python -m sre_tools.offline_incident_analysis.tools`: the module name of `sre-tools` in older scripts."""

from __future__ import annotations

from sre_tools.shell import main

if __name__ == "__main__":
    main()
