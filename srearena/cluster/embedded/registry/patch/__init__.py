"""The four ways a client may say what to change, each a pure function of the object as it is and the patch.

Inputs are never changed, and what comes back shares nothing with them: the caller owns it.
"""
