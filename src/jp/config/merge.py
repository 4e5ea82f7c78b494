"""To be written."""

from __future__ import annotations
