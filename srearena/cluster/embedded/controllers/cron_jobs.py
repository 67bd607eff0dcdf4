"""CronJobs: jobs by the clock."""
