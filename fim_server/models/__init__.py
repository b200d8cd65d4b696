"""Fill-in-the-middle models: where they are found, how they are prompted, what runs them."""
