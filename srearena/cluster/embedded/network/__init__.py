"""The network of the embedded cluster: names, services, policies, links, and who reaches whom."""
