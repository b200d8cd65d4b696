"""Small models, scripted models, and stand-ins for endpoints and hubs."""
