"""The entry point: `jp`, and `python -m jp`."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
