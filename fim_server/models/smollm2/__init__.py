"""SmolLM2-135M with a fill-in-the-middle adapter: the model folder, built from the published weights without torch."""
