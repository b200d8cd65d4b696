"""Models of transformers on PyTorch, on any device: the extra `torch`."""
