"""The process and its threads: memory, deadlines of threads, blocking work."""
