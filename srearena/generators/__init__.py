"""What drives and what breaks an application: `workload` and `fault`."""
