"""The entry builder: parts to entries. Pure."""

from __future__ import annotations
