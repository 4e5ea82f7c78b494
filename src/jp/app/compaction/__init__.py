"""Compaction as users ask for it: ordered, previewed, applied, and written by a summarizer."""
