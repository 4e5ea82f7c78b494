"""The turn as a state machine: what happened, what is next. Pure."""

from __future__ import annotations
