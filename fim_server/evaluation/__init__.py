"""Evaluation: modes side by side on the samples of a dataset, and what their results say.

``runner`` is the run that goes on after a kill, ``modes`` what is decoded for a sample,
``measures`` what is told of a text, ``shards`` and ``cluster`` how the work is shared, ``records`` the files in between
(docs/evaluation.md). What reads results needs no model: only ``modes`` asks for one, and it when it runs.
"""
