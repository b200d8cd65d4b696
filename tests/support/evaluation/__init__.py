"""Samples, records and reports of evaluations."""
