"""agnhost, the image of Kubernetes' own tests: many small servers and clients in one binary, one module for each."""
