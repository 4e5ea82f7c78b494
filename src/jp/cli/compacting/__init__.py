"""Compaction as commands ask for it: what is wished for, planned, told and written."""
