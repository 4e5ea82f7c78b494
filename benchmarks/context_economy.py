"""`python benchmarks/context_economy.py`: the tables about what is left out of a context, and the plot, alone."""

from __future__ import annotations

from context import tables


def _silent(text: str) -> None:
    pass


def main() -> None:
    """Print all three."""
    for rows in (tables.availability_rows, tables.cache_rows, tables.speed_rows):
        for line in rows(_silent):
            print(line)
        print()


if __name__ == "__main__":
    main()
