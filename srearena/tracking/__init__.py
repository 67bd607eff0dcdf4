"""What happened, told to others: spans by OTLP, runs to Weights & Biases. Off unless asked for in the environment.

Everything is made from the record that is on disk anyway, after the fact: an episode costs nothing more for it, and a
tracker that cannot be reached loses nothing and fails nothing.
"""
