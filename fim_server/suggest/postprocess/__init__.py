"""Fourth stage: changes to decoded texts."""
