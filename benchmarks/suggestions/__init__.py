"""``./dev bench suggestions``: correctness of suggestions for a typing user."""
