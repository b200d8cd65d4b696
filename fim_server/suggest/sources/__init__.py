"""Second stage: sources of suggestions and biases beside the model."""
