"""Third stage: changes to the texts that the model has written."""
