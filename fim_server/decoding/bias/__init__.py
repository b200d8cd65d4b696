"""Biases: adjustments of logits beside the grammar."""
