from __future__ import annotations

from collections.abc import Callable

import pytest

import entered
from entered import Place, Watch, public_functions
from jp.context import budget
from jp.context.budget import estimate_messages
from jp.context.types import Message

PLACES = {function.name: function.place for function in public_functions()}


def silent(text: str) -> None:
    pass


def nothing_entered(report: Callable[[str], None]) -> set[Place]:
    report("nothing")
    return set()


def test_functions_methods_and_properties_of_every_module_are_known_and_nothing_private_or_imported() -> None:
    assert {"estimate.estimate_tokens", "budget.least_loss", "breakdown.Breakdown.free"} <= PLACES.keys()
    assert not any("._" in name for name in PLACES)
    assert len(set(PLACES.values())) == len(PLACES)


def test_what_is_called_is_entered_and_nothing_else() -> None:
    watch = Watch()
    watch.run(lambda: estimate_messages((Message(role="user", content="one"),)))
    budget.least_loss((), 0)

    assert PLACES["budget.estimate_messages"] in watch.entered
    assert PLACES["estimate.estimate_tokens"] in watch.entered
    assert PLACES["budget.least_loss"] not in watch.entered


def test_commands_enter_what_they_need_and_the_rest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entered, "COMMANDS", ("conversation compact --dry-run last",))
    monkeypatch.setattr(entered, "entered_by_benchmarks", nothing_entered)

    head, *missed = entered.rows(silent)
    assert "not entered: estimate.estimate_tokens" not in missed
    assert "not entered: search.rank_plainly" in missed
    assert head == f"{len(PLACES) - len(missed)} of {len(PLACES)} public functions of jp.context are entered"


def test_a_command_that_fails_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entered, "COMMANDS", ("conversation nonsense",))

    with pytest.raises(RuntimeError, match="jp conversation nonsense: error:"):
        entered.entered_by_commands(silent)
