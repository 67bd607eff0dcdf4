"""What grading compares: the cluster before and after, what is stored of it, and distances in the call graph."""
