from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.core import TyperArgument, TyperOption

from jp.cli.command_line.loading import SLOT, PlainValue, build, make_plain
from jp.cli.options import GlobalOptions


class Color(Enum):
    RED = "red"


def do_nothing(options: GlobalOptions) -> None: ...


def parameter_of(annotation: Any, default: Any = None, **settings: Any) -> TyperOption:
    def command(options: GlobalOptions, *, value: Any = None) -> None: ...

    command.__annotations__ = {"options": GlobalOptions, "value": Annotated[annotation, typer.Option(**settings)]}
    command.__kwdefaults__ = {"value": default}
    (parameter,) = build(command).params
    assert isinstance(parameter, TyperOption)
    return parameter


def read(annotation: Any, value: Any, **settings: Any) -> object:
    parameter = parameter_of(annotation, **settings)
    assert make_plain(parameter)
    with build(do_nothing).make_context("jp", []) as context:
        return parameter.process_value(context, value)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (str, "text", "text"),
        (str, "", ""),
        (str | None, None, None),
        (int, "12", 12),
        (int, "-3", -3),
        (int, 7, 7),
        (int | None, None, None),
        (float, "1.5", 1.5),
        (float, "2e3", 2000.0),
        (bool, True, True),
        (bool | None, None, None),
        (Literal["a", "b"], "b", "b"),
        (list[str], ["x", "y"], ["x", "y"]),
        (list[int] | None, ["1", "2"], [1, 2]),
        (list[str] | None, None, ()),
    ],
)
def test_plain_values_are_read_as_their_type(annotation: Any, value: Any, expected: object) -> None:
    assert read(annotation, value) == expected


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, "x", "'x' is not a whole number"),
        (int, "1.5", "'1.5' is not a whole number"),
        (int, "1_000", "'1_000' is not a whole number"),
        (int, "\N{FULLWIDTH DIGIT ONE}", "'\N{FULLWIDTH DIGIT ONE}' is not a whole number"),
        (int, "", "'' is not a whole number"),
        (float, "x", "'x' is not a number"),
        (float, "nan", "'nan' is not a number"),
        (float, "inf", "'inf' is not a number"),
        (float, "1_0", "'1_0' is not a number"),
        (Literal["a", "b"], "c", "'c' is not one of 'a', 'b'"),
        (list[int], ["1", "x"], "'x' is not a whole number"),
    ],
)
def test_what_does_not_read_as_the_type_is_a_bad_parameter(annotation: Any, value: Any, message: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        read(annotation, value)

    assert caught.value.message == message


@pytest.mark.parametrize(
    ("value", "message"), [("0", "'0' is less than 1"), ("10", "'10' is more than 9"), ("5", None)]
)
def test_numbers_keep_to_their_bounds(value: str, message: str | None) -> None:
    if message is None:
        assert read(int, value, min=1, max=9) == int(value)
    else:
        with pytest.raises(typer.BadParameter, match=message):
            read(int, value, min=1, max=9)


@pytest.mark.parametrize(
    ("annotation", "settings"),
    [
        (Path, {}),
        (Color, {}),
        (list[Path], {}),
        (Literal[1, 2], {}),
        (int, {"clamp": True, "min": 1}),
        (str, {"parser": str.upper}),
    ],
)
def test_other_types_stay_with_typer(annotation: Any, settings: dict[str, Any]) -> None:
    parameter = parameter_of(annotation, **settings)

    assert not make_plain(parameter)
    assert getattr(parameter, SLOT) is None


@pytest.mark.parametrize("kind", [TyperOption, TyperArgument])
def test_typer_still_looks_into_the_slot_first(kind: type[TyperOption | TyperArgument]) -> None:
    def command(
        options: GlobalOptions, *, word: Annotated[str, typer.Argument()], flag: Annotated[str, typer.Option()] = ""
    ) -> None: ...

    (parameter,) = [each for each in build(command).params if isinstance(each, kind)]
    assert getattr(parameter, SLOT) is None, "the slot has moved: see jp.cli.command_line.loading"
    make_plain(parameter)

    assert isinstance(getattr(parameter, SLOT), PlainValue)
    assert parameter.get_runtime_param() is getattr(parameter, SLOT)
