"""``./dev bench engine --families``: texts that repeat one construct of a language, and what they cost."""
