"""Second stage: sources of suggestions and advice beside the model."""
