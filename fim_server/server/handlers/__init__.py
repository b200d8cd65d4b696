"""Handlers of requests and notifications."""
