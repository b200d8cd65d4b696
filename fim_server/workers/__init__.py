"""Workers: the threads that run suggestions, and the models and memory that they share."""
