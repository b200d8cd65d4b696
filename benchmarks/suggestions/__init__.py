"""``./dev bench suggestions``: whether what somebody typing is offered is what they were about to write."""
