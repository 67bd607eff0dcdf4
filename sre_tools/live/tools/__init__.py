"""The live tools. Every module here is imported when tools are listed; see `sre_tools.registry`."""
