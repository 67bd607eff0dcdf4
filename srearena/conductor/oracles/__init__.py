"""Who judges a submission, one module per stage; `checks` holds what a mitigation oracle is composed of."""
