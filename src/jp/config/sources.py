"""Layers from outside a conversation: files, the environment, `--cfg`, other options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from jp.config.assignment import Assignment, FragmentName, JsonPatch, change_of, parse_cfg
from jp.config.environment import environment_assignments
from jp.config.extends import Group, load_group
from jp.config.fragments import fragment_layers
from jp.config.invalid import InvalidValueError
from jp.config.layers import Layer, Origin
from jp.config.model import JsonObject
from jp.config.partial import read_partial
from jp.config.places import Candidate, Places, candidates
from jp.config.toml import InvalidFileError, is_file
from jp.config.trust import load_paths


def lower_layers(places: Places, environ: Mapping[str, str]) -> list[Layer]:
    """The files and the environment: what lies below a conversation.

    Raises:
        ConfigurationError: a file or a variable is invalid.
    """
    return [*file_layers(places), *environment_layers(environ)]


def file_layers(places: Places) -> list[Layer]:
    """The files, least specific first, up to one that says `inherit = false`; a stranger's says it of such files only.

    Raises:
        ConfigurationError: one cannot be read or is invalid.
    """
    return [layer for _, group in _groups(places) if group is not None for layer in group.layers]


def unread_files(places: Places) -> list[Path]:
    """The files that are there and do not count, because one before them says `inherit = false`.

    Raises:
        ConfigurationError: one that counts cannot be read or is invalid.
    """
    read = [candidate for candidate, _ in _groups(places)]
    return [candidate.path for candidate in candidates(places) if candidate not in read and is_file(candidate.path)]


def _groups(places: Places) -> Iterator[tuple[Candidate, Group | None]]:
    """The files that count, each with its layers. A stranger's file keeps none of the user's own from counting."""
    enders: set[bool] = set()
    for candidate in candidates(places):
        if False in enders or (candidate.foreign and enders):
            continue
        group = load_group(candidate.path, kind=candidate.kind, root=places.root, foreign=candidate.foreign)
        if group is not None and not group.inherit:
            enders.add(candidate.foreign)
        yield candidate, group


def environment_layers(environ: Mapping[str, str]) -> list[Layer]:
    """The `JP_CFG_*` variables, by name.

    Raises:
        ConfigurationError: a variable means no key, or its value is not accepted.
    """
    return [
        Layer(origin=Origin(kind="environment", where=name), change=change_of(assignment))
        for name, assignment in environment_assignments(environ)
    ]


def cfg_layers(values: Sequence[str], places: Places, below: Sequence[Layer]) -> list[Layer]:
    """The values of `--cfg`, in order. `below` and the values before a name say where that is looked for.

    Raises:
        ConfigurationError: a value has no meaning, a name means no file, or a file is invalid.
    """
    layers: list[Layer] = []
    for text in values:
        try:
            value = parse_cfg(text)
            layers += _cfg_value(value, text, places, [*below, *layers])
        except InvalidValueError as error:
            raise error.within(f"--cfg {text!r}") from None
        except InvalidFileError as error:
            raise InvalidFileError(f"--cfg {text!r}: {error.message}", hint=error.hint) from None
    return layers


def _cfg_value(
    value: FragmentName | JsonPatch | Assignment, text: str, places: Places, below: Sequence[Layer]
) -> list[Layer]:
    match value:
        case FragmentName():
            return fragment_layers(value, places, load_paths(below, str(places.root)))
        case JsonPatch() | Assignment():
            return [Layer(origin=Origin(kind="cfg", where=text), change=change_of(value))]
        case _:
            assert_never(value)


def flag_layer(option: str, partial: JsonObject) -> Layer:
    """What an option of a command, such as `--model`, asks for; `option` is how it was typed.

    Raises:
        InvalidValueError: the option's value is not accepted.
    """
    try:
        return Layer(origin=Origin(kind="flag", where=option), change=read_partial(partial))
    except InvalidValueError as error:
        raise error.within(option) from None
