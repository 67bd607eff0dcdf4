"""Load generation: the shape over time, the mix of requests, and the load generators wrk2, Locust and bhotelwrk."""
