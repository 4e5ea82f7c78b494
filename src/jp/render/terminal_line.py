"""What is done to the last line of a terminal."""

from __future__ import annotations

ERASE = "\r\x1b[K"
"""Empties the line in which the cursor is, and puts the cursor at its beginning."""
