"""The control loops: each watches some objects and moves the world toward what they ask for."""
