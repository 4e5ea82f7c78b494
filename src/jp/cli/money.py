"""What was spent, in words. Pure."""

from __future__ import annotations

from jp.conversation.usage import prompt_tokens
from jp.render.units import money_text
from jp.turn.spending import Spending


def cost_text(spending: Spending) -> str:
    """What it cost: `$0.0123`, `free`, `unknown`, or `at least $0.0123`."""
    if not spending.unpriced:
        used = prompt_tokens(spending.usage) + spending.usage.output + spending.untold
        return "free" if used and not spending.usd else money_text(spending.usd)
    least = money_text(spending.usd)
    return f"at least {least}" if spending.usd and not least.startswith("<") else "unknown"


def cost_sentence(spending: Spending) -> str:
    """The same, and how much of it is not known."""
    text = cost_text(spending)
    if not spending.unpriced or spending.unpriced == spending.cycles:
        return f"cost {text}" if text == "unknown" else text
    return f"{text}; what {spending.unpriced:,} of {spending.cycles:,} cycles cost is unknown"
