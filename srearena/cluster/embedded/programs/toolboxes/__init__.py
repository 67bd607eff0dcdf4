"""Images that hold tools and language runtimes rather than a server."""
