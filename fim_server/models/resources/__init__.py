"""Memory, threads and crashes: limits of loading a model in this process."""
