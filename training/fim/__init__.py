"""The adapter that teaches SmolLM2 to fill in the middle: examples, network, training and checkpoints."""
