"""The oracles that grade submissions, one module per stage; `checks` has the parts of a mitigation oracle."""
