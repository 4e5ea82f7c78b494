"""Reads the values of plain parameters without pydantic.

Typer builds a pydantic adapter for every parameter of the command that runs, which costs more than the rest of jp's
start-up. It does so lazily, unless the parameter's slot for it is filled: `make_plain` fills it for the types that jp
uses. The slot is not Typer's public interface, hence the pin in `pyproject.toml` and the test that fails where a
release moves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

from typer import BadParameter
from typer.core import TyperArgument, TyperOption
from typer.models import Context, ParameterInfo

SLOT = "_runtime_param"

Reader = Callable[[Any], object]


class PlainValue:
    """Stands in for Typer's adapter of one parameter."""

    def __init__(self, read: Reader) -> None:
        self._read = read

    def coerce(self, value: Any, param: TyperArgument | TyperOption, ctx: Context) -> object:
        """The value that the command gets for what was typed, or for the default.

        Raises:
            BadParameter: it does not read as the parameter's type.
        """
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        try:
            return self._read(value)
        except ValueError as error:
            raise BadParameter(str(error), ctx=ctx, param=param) from error


def make_plain(parameter: TyperArgument | TyperOption) -> bool:
    """Let jp read `parameter`; False where its type is not plain, so that Typer has to."""
    descriptor = parameter.type_descriptor
    read = _reader(descriptor.annotation, descriptor.parameter_info)
    if read is None:
        return False
    setattr(parameter, SLOT, PlainValue(read))
    return True


def _reader(annotation: Any, info: ParameterInfo) -> Reader | None:
    if info.parser is not None or info.clamp:
        return None
    if get_origin(annotation) is list:
        return _list_reader(_reader(get_args(annotation)[0], info))
    if get_origin(annotation) is Literal:
        return _choice_reader(get_args(annotation))
    return _scalar_reader(annotation, info)


def _scalar_reader(annotation: Any, info: ParameterInfo) -> Reader | None:
    if annotation is str or annotation is bool:
        return _unchanged
    if annotation is int:
        return _number_reader(_whole_number, info)
    if annotation is float:
        return _number_reader(_number, info)
    return None


def _unchanged(value: Any) -> object:
    """Words are text already, and flags are read by the parser."""
    return value


def _list_reader(read: Reader | None) -> Reader | None:
    if read is None:
        return None

    def read_all(values: Any) -> object:
        return [read(value) for value in values]

    return read_all


def _choice_reader(choices: tuple[object, ...]) -> Reader | None:
    if not all(isinstance(choice, str) for choice in choices):
        return None

    def read(value: Any) -> object:
        if value not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(map(repr, choices))}")
        return value

    return read


def _number_reader(convert: Callable[[Any], float], info: ParameterInfo) -> Reader:
    def read(value: Any) -> object:
        number = convert(value)
        if info.min is not None and number < info.min:
            raise ValueError(f"{value!r} is less than {info.min}")
        if info.max is not None and number > info.max:
            raise ValueError(f"{value!r} is more than {info.max}")
        return number

    return read


def _whole_number(value: Any) -> int:
    if isinstance(value, int):
        return value
    if not str(value).removeprefix("-").isdecimal() or not str(value).isascii():
        raise ValueError(f"{value!r} is not a whole number")
    return int(value)


def _number(value: Any) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in str(value):
        raise ValueError(f"{value!r} is not a number")
    return number
