"""Tools that an agent investigates incidents with."""
