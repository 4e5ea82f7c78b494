"""`python benchmarks/context_economy.py`: the tables about compaction, and the plot, alone."""

from __future__ import annotations

from context import tables


def _silent(text: str) -> None:
    pass


def main() -> None:
    """Print all three."""
    for rows in (tables.availability_rows, tables.automatic_rows, tables.speed_rows):
        for line in rows(_silent):
            print(line)
        print()


if __name__ == "__main__":
    main()
