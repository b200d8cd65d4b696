"""The operating system: memory, files, other processes, watched threads, and blocking work."""
