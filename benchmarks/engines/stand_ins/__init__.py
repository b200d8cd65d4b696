"""Modules that stand in for those of other engines, in the processes of their servers."""
