"""What an agent can do: how its text becomes a call (`parsing`), and what the calls do (`toolbox` and its parts)."""
