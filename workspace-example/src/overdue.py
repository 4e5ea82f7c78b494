"""Print who has to bring something back: python src/overdue.py [YYYY-MM-DD]"""

import sys
from datetime import date
from pathlib import Path

import loans

DATA = Path(__file__).parent.parent / "data" / "loans.csv"


def main():
    today = date.fromisoformat(sys.argv[1]) if len(sys.argv) > 1 else date.today()
    for loan in sorted(loans.read(DATA), key=loans.due):
        if loans.is_overdue(loan, today):
            owed = loans.fee(loan, today) / 100
            print(f"{loans.due(loan)}  {loan.member:8} {loan.tool:18} {owed:6.2f}")


if __name__ == "__main__":
    main()
