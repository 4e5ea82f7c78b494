"""jp: a command-line LLM assistant that treats context as a budget."""

from __future__ import annotations

__version__ = "0.1.0"
