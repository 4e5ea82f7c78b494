"""Commands that are Jinja templates, rendered in a sandbox; values become variables of a shell. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec

from jp.config.entries import CommandConfig
from jp.conversation.entries import JsonObject
from jp.errors import ConfigurationError, JpError

if TYPE_CHECKING:
    from jinja2 import Environment


_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_HELD = re.compile("\ue000([0-9]+)\ue001")
_CONDITION = "{%"
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
_SCRIPT_OPTION = re.compile(r"-[a-z]*c[a-z]*")


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """Words, the first of which is a program, and variables besides those of every program."""

    words: tuple[str, ...]
    variables: Mapping[str, str] = {}


def command_of(name: str, command: str | CommandConfig | None) -> CommandConfig:
    """Return the command of the local tool `name`; a text is split as a shell splits words, its templates whole.

    Raises:
        ConfigurationError: there is none, or it has a quote that is not closed.
    """
    hint = f"name its program: `conversation.tools.{name}.command`, as words or as {{program, args}}"
    if command is None or (isinstance(command, str) and not command.strip()):
        raise ConfigurationError(f"the local tool {name!r} has no command", hint=hint)
    if isinstance(command, str):
        words = _split(name, command)
        command = CommandConfig(program=words[0], args=tuple(words[1:]))
    if not command.program.strip():
        raise ConfigurationError(f"the command of the tool {name!r} has no program", hint=hint)
    return command


def check_script(name: str, command: CommandConfig) -> None:
    """Refuse a template inside of a script that a shell gets as an argument: there its values would be code.

    Raises:
        ConfigurationError: there is one.
    """
    if posixpath.basename(command.program) not in _SHELLS or command.shell:
        return
    option = next((number for number, word in enumerate(command.args) if _SCRIPT_OPTION.fullmatch(word)), None)
    script = "" if option is None else "".join(command.args[option + 1 : option + 2])
    if "{{" in script:
        raise ConfigurationError(
            f"the command of the tool {name!r} has a template inside of a script, where its value would run as code",
            hint='let jp put it in safely: `command = {program = "SCRIPT", shell = true}`',
        )


def _split(name: str, command: str) -> list[str]:
    import shlex

    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found[0])
        return f"\ue000{len(held) - 1}\ue001"

    try:
        words = shlex.split(_EXPRESSION.sub(hold, command))
    except ValueError:
        message = f"the command of the tool {name!r} has a quote that is not closed: {command!r}"
        raise ConfigurationError(message) from None
    return [_HELD.sub(lambda found: held[int(found[1])], word) for word in words]


def rendered(command: CommandConfig, values: JsonObject) -> CommandLine:
    """Return the words of a call whose templates see `values`, within the bounds of this module.

    An argument that begins with a condition and comes to nothing is left out.

    Raises:
        TemplateError: a template cannot be rendered.
    """
    texts = ((template, render(template, values)) for template in command.args)
    arguments = [text for template, text in texts if text or not template.lstrip().startswith(_CONDITION)]
    if not command.shell:
        return CommandLine(words=(render(command.program, values), *arguments))

    script, held = render_script(command.program, values)
    marks = [mark(len(held) + number) for number in range(len(arguments))]
    held += arguments
    variables = {variable(number): value for number, value in enumerate(held)}
    return CommandLine(words=("/bin/sh", "-c", with_variables(" ".join([script, *marks]))), variables=variables)


def plain(command: CommandConfig) -> CommandLine:
    """Return the words of a command that gets its arguments in another way, as they stand there."""
    if not command.shell:
        return CommandLine(words=(command.program, *command.args))
    import shlex

    return CommandLine(words=("/bin/sh", "-c", " ".join([command.program, *map(shlex.quote, command.args)])))


def shown(line: CommandLine) -> str:
    """Return a command as one could type it, for the person who is asked about it."""
    import shlex

    assignments = [f"{name}={shlex.quote(value)}" for name, value in line.variables.items()]
    script = line.words[-1] if line.words[:2] == ("/bin/sh", "-c") else shlex.join(line.words)
    return "\n".join([*assignments, script])


_BEGIN, _END = "\ue000", "\ue001"
_MARK = re.compile(f"{_BEGIN}([0-9]+){_END}")
_CODE = re.compile(rf"\\.|\$\(\(|\)\)|\$\(|\$\{{|{_MARK.pattern}|.", re.DOTALL)
_LITERAL = re.compile(rf"{_MARK.pattern}|.", re.DOTALL)
"""Inside single quotes and in a comment, a backslash is nothing special."""

_CLOSE = ""
_QUOTED = {"`": "`", "$(": "(", "$((": "((", "${": "{"}
_OPENING = {**_QUOTED, "'": "'", '"': '"', "(": "(", "#": "#"}
_STEPS: dict[str, dict[str, str]] = {
    "": _OPENING,
    "(": {**_OPENING, ")": _CLOSE},
    "`": {**_OPENING, "`": _CLOSE},
    "((": {**_QUOTED, "))": _CLOSE},
    "{": {**_QUOTED, "'": "'", '"': '"', "}": _CLOSE},
    '"': {**_QUOTED, '"': _CLOSE},
    "'": {"'": _CLOSE},
    "#": {"\n": _CLOSE},
}
"""In which place what opens which other one, or closes this one."""


def mark(number: int) -> str:
    """Return what stands in a script for value `number` until `with_variables` has seen it."""
    return f"{_BEGIN}{number}{_END}"


def unmarked(text: str, values: Sequence[str]) -> str:
    """`text` with the values themselves in place of their marks."""

    def value(found: re.Match[str]) -> str:
        number = int(found[1])
        return values[number] if number < len(values) else found[0]

    return _MARK.sub(value, text)


def variable(number: int) -> str:
    """Return the variable that holds value `number`."""
    return f"JP_VALUE_{number + 1}"


def with_variables(script: str) -> str:
    """`script` with a variable in place of each mark, so quoted that its value is one word, or a part of one.

    Raises:
        JpError: a value stands in arithmetic, which some shells evaluate as code.
    """
    pieces: list[str] = []
    places = [""]
    position = 0
    while position < len(script):
        place = places[-1]
        found = (_LITERAL if place in {"'", "#"} else _CODE).match(script, position)
        sign = found[0] if found else script[position]
        # Two brackets end arithmetic; elsewhere the second may end something else than the first.
        sign = sign[:1] if sign == "))" and place != "((" else sign
        number = None if found is None else found[1]
        pieces.append(sign if number is None else _reference(int(number), place))
        _move(places, sign, script, position)
        position += len(sign)
    return "".join(pieces)


def _move(places: list[str], sign: str, script: str, position: int) -> None:
    step = _STEPS[places[-1]].get(sign)
    if sign == "#" and places[-1] != "#" and not _begins_word(script, position):
        return
    if step == _CLOSE:
        places.pop()
    elif step is not None:
        places.append(step)


def _begins_word(script: str, position: int) -> bool:
    return position == 0 or script[position - 1] in " \t\n;|&("


def _reference(number: int, place: str) -> str:
    bare = f"${{{variable(number)}}}"
    match place:
        case "((":
            raise JpError("a value stands in `$((…))`, where a shell may run it: give it to a program instead")
        case "'":
            return f"'\"{bare}\"'"
        case '"' | "{" | "#":
            return bare
        case _:
            return f'"{bare}"'


MOST_CHARS = 2 * 1024 * 1024
"""Most characters of a rendered command; systems take less."""


class TemplateError(JpError):
    """A command of a local tool cannot be rendered."""


def are_placing(templates: Iterable[str]) -> bool:
    """Return whether all `templates` are simple: see `jp.process.worker.is_simple_template`."""
    from jinja2 import TemplateSyntaxError

    from jp.process.worker import is_simple_template

    environment = _environment(_text)
    try:
        return all(is_simple_template(environment, template) for template in templates)
    except TemplateSyntaxError:
        return True  # and nothing is computed before that is found out again
    except RecursionError:
        return False


def render(template: str, values: JsonObject) -> str:
    """`template` with its expressions replaced.

    Raises:
        TemplateError: it cannot be rendered.
    """
    return _rendered(template, values, _environment(_text))


def render_script(template: str, values: JsonObject) -> tuple[str, list[str]]:
    """Return a shell's script with marks (`shell_words`) where values stand, and these values.

    Raises:
        TemplateError: it cannot be rendered, or changes what expressions have given, so that a value could escape.
    """
    found: list[str] = []
    size = 0

    def keep(value: object) -> str:
        nonlocal size
        text = unmarked(_text(value), found)
        size += len(text)
        if size > MOST_CHARS:
            raise _too_long()
        found.append(text)
        return mark(len(found) - 1)

    environment = _environment(keep)
    _check_script(environment, template)
    return _rendered(template, values, environment), found


def _text(value: object) -> str:
    from jinja2 import Undefined

    match value:
        case str() | Undefined():
            return str(value)  # which raises where it is not defined
        case None:
            return ""
        case _:
            return msgspec.json.encode(value, enc_hook=_listed).decode()


def _listed(value: Any) -> list[Any]:
    """Return what a filter such as `map` gives, as a list.

    Raises:
        TypeError: it is a function or the like.
    """
    if isinstance(value, Iterable):
        return [*cast("Iterable[Any]", value)]
    raise TypeError(f"a {type(value).__name__} is no value")


def _rendered(template: str, values: JsonObject, environment: Environment) -> str:
    try:
        return _joined(environment.from_string(template).generate(values))
    except JpError:
        raise
    except Exception as error:  # noqa: BLE001 - an expression can raise whatever Python has
        from jp.process.worker import reason_of

        raise _failed(template, reason_of(error)) from None


def _joined(pieces: Iterable[str]) -> str:
    kept: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MOST_CHARS:
            raise _too_long()
        kept.append(piece)
    return "".join(kept)


def _environment(finalize: Callable[[object], str]) -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class MembersFirst(ImmutableSandboxedEnvironment):
        """An argument may be called `items` or `keys`, as a method is."""

        def getattr(self, obj: Any, attribute: str) -> Any:
            if not isinstance(obj, dict):
                return super().getattr(obj, attribute)
            members = cast("dict[str, Any]", obj)
            with suppress(KeyError):
                return members[attribute]
            if hasattr(members, attribute):
                return super().getattr(members, attribute)
            return self.undefined(f"there is no {attribute!r}; there are: {', '.join(members) or 'none'}")

    environment = MembersFirst(undefined=StrictUndefined, keep_trailing_newline=True, finalize=finalize)
    del environment.globals["lipsum"]  # chance
    return environment


def _check_script(environment: Environment, template: str) -> None:
    """Refuse blocks whose filters may put a value where no mark is.

    Raises:
        TemplateError: there is one, or it is no template.
    """
    from jinja2 import TemplateSyntaxError
    from jinja2.nodes import CallBlock, FilterBlock

    try:
        parsed = environment.parse(template)
    except TemplateSyntaxError as error:
        raise _failed(template, str(error)) from None
    if parsed.find(FilterBlock) is not None or parsed.find(CallBlock) is not None:
        raise _failed(template, "a shell's command may have no filter and no call blocks")


def _too_long() -> TemplateError:
    return TemplateError(f"the command renders to more than {MOST_CHARS:,} characters")


def _failed(template: str, reason: str) -> TemplateError:
    return TemplateError(f"the template {template!r} cannot be rendered: {reason}")


async def rendered_in_bounds(command: CommandConfig, values: JsonObject) -> CommandLine:
    """Return what `rendered` gives. Templates that do more than to put values in their places run apart.

    Raises:
        TemplateError: a template cannot be rendered.
    """
    if are_placing((command.program, *command.args)):
        return rendered(command, values)
    from jp.process.worker import WorkerError, render_in_worker

    try:
        found = await render_in_worker(__name__, (msgspec.to_builtins(command), values))
    except WorkerError as error:
        raise TemplateError(f"the command {command.program!r} cannot be rendered: {error}") from None
    if isinstance(found, str):
        raise TemplateError(found)
    return msgspec.convert(found, CommandLine)


def main() -> None:
    """Render apart: see `jp.process.worker.render_in_worker`. What is wrong is told as a text."""
    from jp.process.worker import serve_task

    serve_task(_answer)


def _answer(task: tuple[JsonObject, JsonObject]) -> object:
    try:
        return msgspec.to_builtins(rendered(msgspec.convert(task[0], CommandConfig), task[1]))
    except JpError as error:
        return error.message
