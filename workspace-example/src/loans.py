"""Loans of the repair shed: who has what, until when, and what being late costs."""

import csv
from dataclasses import dataclass
from datetime import date, timedelta

LOAN_DAYS = 14
GRACE = timedelta(days=2)
CENTS_PER_DAY = 50


@dataclass(frozen=True)
class Loan:
    member: str
    tool: str
    lent: date
    returned: date | None


def read(path):
    """All loans in a CSV file."""
    with open(path, encoding="utf-8", newline="") as file:
        return [
            Loan(
                member=row["member"],
                tool=row["tool"],
                lent=date.fromisoformat(row["lent"]),
                returned=date.fromisoformat(row["returned"]) if row["returned"] else None,
            )
            for row in csv.DictReader(file)
        ]


def due(loan):
    """The last day on which the tool may come back."""
    return loan.lent.replace(day=loan.lent.day + LOAN_DAYS)


def is_overdue(loan, today):
    return loan.returned is None and due(loan) < today


def fee(loan, today):
    """What the member owes, in cents. The days of grace are free, and then count."""
    late = (loan.returned or today) - due(loan)
    return late.days * CENTS_PER_DAY if late > GRACE else 0
