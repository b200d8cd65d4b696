"""Evaluation: modes side by side on the samples of a dataset, and what their results say.

``running`` decodes and judges samples, ``reporting`` reads what it wrote, and ``records`` are the files in between
(docs/evaluation.md). What reads results needs no model: ``running`` alone asks for one, and it when it runs.
``choosing`` tries one model on ten holes (docs/models.md).
"""
