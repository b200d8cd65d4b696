"""Models in GGUF files, computed by llama.cpp's own library in this process."""
