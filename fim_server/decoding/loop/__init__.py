"""The decoding loop: one middle under the constraint of a session."""
