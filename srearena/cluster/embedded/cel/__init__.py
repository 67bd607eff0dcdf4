"""The Common Expression Language, with Kubernetes' functions, as the API server of 1.34 compiles and evaluates it.

Used for admission policies, match conditions of webhooks and the validation rules of custom resources. Nothing here is
imported before the first expression: import `compiled` where one is there.
"""
