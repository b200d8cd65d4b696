"""Exported models on onnxruntime, on the CPU."""
