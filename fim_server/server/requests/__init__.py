"""Requests for completions, from their arrival to their answer, and what is prefetched for the next ones."""
