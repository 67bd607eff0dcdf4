"""What the cluster shows of itself: metrics, logs, traces and alerts, and the HTTP APIs people read them through."""
