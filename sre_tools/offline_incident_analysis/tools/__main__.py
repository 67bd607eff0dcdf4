"""`python -m sre_tools.offline_incident_analysis.tools`: the name under which scripts know the shell command."""

from __future__ import annotations

from sre_tools.shell import main

if __name__ == "__main__":
    main()
