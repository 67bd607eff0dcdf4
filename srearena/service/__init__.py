"""Applications, and the clients with which they are deployed: Kubernetes API, kubectl, helm."""
