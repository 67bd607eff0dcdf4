"""SREArena: put AI agents for site reliability engineering to the test."""
