"""Agents in a process of their own: where it runs (`isolation`), its program, and the harness's end (`client`).

The process gets the texts of the episode and the agent's own kubeconfig, nothing else: it is started from a clean
interpreter, so that neither the problem nor its answer has ever been in its memory.
"""
