"""Which resource was delivered before, unchanged (RFD 067). Pure; written by nobody else than who delivers."""

from __future__ import annotations
