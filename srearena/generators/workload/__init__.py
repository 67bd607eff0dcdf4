"""Load on applications: its shape over time, its mix of requests, and the tools that send it and measure."""
