"""Check a call's arguments against the tool's schema and the rules for the tool. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, TypeGuard

import msgspec
from msgspec.structs import replace

from jp.config.entries import RuleConfig, RunMode, ToolConfig
from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError, reason_of
from jp.suggestions import closest_names
from jp.tool.base import ConfiguredTool, Toolbox, ToolOutput, error_output

_ARTICLED = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
TYPES = tuple(_ARTICLED)
"""Names of types in JSON Schema."""


def argument_problems(schema: JsonObject, arguments: JsonObject) -> list[str]:
    """Return what is wrong with `arguments`, one sentence each, in words that the model can act on. Empty: nothing."""
    return _object_problems(schema, arguments, "")


def fitted(schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Return `arguments` with common errors of models corrected.

    A text in a place for another type is read as JSON, if that fits: models write `"[1, 2]"` for `[1, 2]`. Missing
    arguments get their defaults.
    """
    properties: JsonObject = schema.get("properties", {})
    given = {
        name: _fitted(properties[name], value) if name in properties else value for name, value in arguments.items()
    }
    omitted = {
        name: item["default"]
        for name, item in properties.items()
        if name not in given and _is_object(item) and "default" in item and not _problems(item, item["default"], name)
    }
    return {**given, **omitted}


def _fitted(schema: object, value: object) -> object:
    if not _is_object(schema):
        return value
    types = _types(schema)
    if isinstance(value, str) and types and "string" not in types:
        value = _meant(value, types)
    if _is_object(value):
        return fitted(schema, value)
    if _is_array(value) and "items" in schema:
        return [_fitted(schema["items"], item) for item in value]
    return value


def _meant(text: str, types: list[str]) -> object:
    """Return what `text` says as JSON where that is of one of the `types`, else the text."""
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value if _is_of(value, types) else text


def _is_of(value: object, types: list[str]) -> bool:
    found = _type_of(value)
    return found in types or (found == "integer" and "number" in types)


def _is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def _is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case _:
            return "array" if _is_array(value) else "object"


def _types(schema: JsonObject) -> list[str]:
    declared = schema.get("type", [])
    return [declared] if isinstance(declared, str) else list(declared)


def _object_problems(schema: JsonObject, value: JsonObject, place: str) -> list[str]:
    properties: JsonObject = schema.get("properties", {})
    problems = [f"{_join(place, name)!r} is missing" for name in schema.get("required", ()) if name not in value]
    for name, item in value.items():
        if name in properties:
            problems += _problems(properties[name], item, _join(place, name))
        elif schema.get("additionalProperties") is False:
            problems.append(_unknown(name, properties, place))
    return problems


def _unknown(name: str, properties: JsonObject, place: str) -> str:
    near = closest_names(name, properties)
    known = ", ".join(repr(other) for other in sorted(properties)) or "none"
    meant = f"did you mean {near[0]!r}?" if near else f"known are: {known}"
    return f"{_join(place, name)!r} is not known; {meant}"


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _problems(schema: object, value: object, place: str) -> list[str]:
    if not _is_object(schema):  # `true`: anything
        return []
    types = _types(schema)
    if types and not _is_of(value, types):
        wanted = " or ".join(_ARTICLED.get(name, name) for name in types)
        return [f"{place!r} must be {wanted}, not {_ARTICLED[_type_of(value)]}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place!r} must be one of {', '.join(repr(choice) for choice in schema['enum'])}"]
    if _is_object(value):
        return _object_problems(schema, value, place)
    if _is_array(value) and "items" in schema:
        items = [_problems(schema["items"], item, f"{place}[{index}]") for index, item in enumerate(value)]
        return [problem for problems in items for problem in problems]
    return []


_NAMES_SHOWN = 50


class CheckedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that can be run, with the arguments that it is run with, defaults included.

    `is_edited`: a person has changed them. `is_agreed`: a person has seen this call and lets it run.
    """

    call: ToolCallRequest
    configured: ConfiguredTool
    arguments: JsonObject
    is_edited: bool = False
    is_agreed: bool = False


def check(call: ToolCallRequest, toolbox: Toolbox) -> CheckedCall | ToolOutput:
    """Return the call as it can be run, or what the model is told."""
    configured = toolbox.get(call.name)
    if configured is None:
        return _unknown_tool(call.name, toolbox)
    given = _object(call.arguments)
    if isinstance(given, str):
        return error_output(f"The arguments are {given}, so nothing ran. Send the call again with a JSON object.")
    checked = with_arguments(CheckedCall(call=call, configured=configured, arguments=given), given)
    if isinstance(checked, CheckedCall):
        return checked
    problems = "; ".join(checked)
    end = "" if problems.endswith("?") else "."
    return error_output(f"The arguments do not fit, so nothing ran: {problems}{end}")


def with_arguments(checked: CheckedCall, arguments: JsonObject) -> CheckedCall | list[str]:
    """Return the same call with other arguments, or what is wrong with them."""
    schema = checked.configured.tool.definition.parameters
    arguments = fitted(schema, arguments)
    problems = argument_problems(schema, arguments)
    return problems or msgspec.structs.replace(checked, arguments=arguments)


def problems_of(checked: CheckedCall | list[str]) -> list[str]:
    """Return what is wrong, where something is."""
    return checked if isinstance(checked, list) else []


def _object(arguments: JsonObject | str) -> JsonObject | str:
    """Return the arguments; where they are no object, what they are. An object that was written as a text is one."""
    if not isinstance(arguments, str):
        return arguments
    try:
        decoded: object = msgspec.json.decode(arguments)
        if isinstance(decoded, str):
            decoded = msgspec.json.decode(decoded)
        return msgspec.convert(decoded, JsonObject)
    except msgspec.ValidationError:
        return "JSON, but not an object"
    except (msgspec.DecodeError, RecursionError) as error:
        return f"not JSON ({reason_of(error)})"


def _unknown_tool(name: str, toolbox: Toolbox) -> ToolOutput:
    from difflib import get_close_matches

    names = sorted(toolbox)
    near = get_close_matches(name, names, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    listed = ", ".join(map(repr, names[:_NAMES_SHOWN])) or "none"
    return error_output(f"There is no tool {name!r}, so nothing ran.{meant} Tools that may be called: {listed}{more}.")


MOST_READINGS = 10_000
"""Of a call with more readings the strictest rule counts, whichever it is."""

LONGEST_TEXT = 16_384
"""And so it is with one that has a longer text where a rule asks for it."""

_STRICTEST_FIRST: Sequence[RunMode] = ("skip", "edit", "ask", "unattended")
_PATH_WORDS = frozenset({"path", "paths", "file", "files", "directory", "directories", "prefix", "prefixes"})

_STEP = re.compile(r"(?:^|/)\.\.?(?:/|$)|(?<!:)//")

Reading = Mapping[str, str]
"""The text of each argument that rules ask for."""

_FOLLOWING = "(?: [A-Za-z0-9_./:=,@%+ -]*)?"
"""A pattern of the rest of a command after its prefix: characters that a shell reads as themselves."""


class _Matcher(msgspec.Struct, frozen=True):
    """A compiled rule: the patterns by argument, the only arguments of a call if there are such, and the mode."""

    patterns: Sequence[tuple[str, re.Pattern[str]]]
    only: frozenset[str] | None
    run: RunMode

    def matches(self, reading: Reading, names: Collection[str]) -> bool:
        if self.only is not None and not self.only.issuperset(names):
            return False
        return all(name in reading and pattern.fullmatch(reading[name]) for name, pattern in self.patterns)


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """The directory of relative paths, and the resolution of links in absolute ones."""

    root: str
    real: Callable[[str], str]


def run_mode(settings: ToolConfig, arguments: JsonObject, paths: Paths) -> RunMode:
    """Return how a call with these arguments runs."""
    usual = settings.run or "ask"
    if not settings.rules:
        return usual
    wanted = {name for rule in settings.rules for name in _names_of(rule)}
    given = {name: _texts_of(name, arguments[name], paths) for name in sorted(wanted) if name in arguments}
    readings = list(islice(_readings(given), MOST_READINGS + 1))
    if len(readings) > MOST_READINGS or any(len(text) > LONGEST_TEXT for texts in given.values() for text in texts):
        return _strictest([usual, *(rule.run for rule in settings.rules)])
    matchers = [_matcher(rule, paths) for rule in settings.rules]
    return _strictest(_mode(reading, arguments, matchers, usual) for reading in readings)


class LastingRule(msgspec.Struct, frozen=True, kw_only=True):
    """A way to let further calls of a tool run without a question, in words; without a `rule` it is every call."""

    covers: str
    rule: RuleConfig | None = None


_PROGRAM = r"[A-Za-z0-9_./+][A-Za-z0-9_./+-]*"
_SUBCOMMAND = r"[a-z][a-z0-9:_-]*"
_RUN_OTHERS = frozenset({
    *("ash", "awk", "bash", "csh", "dash", "fish", "gawk", "ksh", "rbash", "sh", "tclsh", "zsh", "pwsh", "powershell"),
    *("builtin", "command", "doas", "env", "eval", "exec", "find", "ionice", "nice", "nohup", "setsid", "source", "."),
    *("ssh", "stdbuf", "su", "sudo", "time", "timeout", "tmux", "watch", "xargs"),
    *("bun", "bunx", "deno", "lua", "node", "npx", "perl", "php", "pipx", "python", "python3", "ruby", "uvx"),
})
"""Programs that run any other one, or code of their arguments: as a prefix they would allow everything."""


def lasting_rules(
    definition: ToolDefinition, settings: ToolConfig, arguments: JsonObject, paths: Paths, *, is_file_tool: bool
) -> list[LastingRule]:
    """Return the ways to let calls such as this one run without a question, the narrowest first.

    A rule names every argument that the call has and admits no other, except one for a directory, which is for jp's own
    file tools, whose other arguments name no place. No pattern has a wildcard but the one that ends a directory's name,
    so a model cannot widen a rule by what it writes. A rule that would not let this very call run is omitted: a link
    leads elsewhere, or another rule comes first.

    Args:
        definition: of the tool.
        settings: of the tool, in effect.
        arguments: of the call, defaults included.
        paths: the workspace's root, to which relative paths refer.
        is_file_tool: it is one of jp's own tools for files.
    """
    name = definition.name
    found = [*_exact_rules(name, arguments, paths)]
    if is_file_tool:
        found += _directory_rules(definition, arguments, paths)
    fitting = [
        way
        for way in found
        if way.rule is not None
        and run_mode(replace(settings, rules=(*settings.rules, way.rule)), arguments, paths) == "unattended"
    ]
    return [*fitting, LastingRule(covers=f"every call of {name}, whatever it is given")]


def _exact_rules(name: str, arguments: JsonObject, paths: Paths) -> Iterator[LastingRule]:
    """Yield a rule for this call, and one for each argument with a command that begins with the same words."""
    texts = {key: _text(value) for key, value in arguments.items() if not isinstance(value, list | dict)}
    if not texts or len(texts) < len(arguments) or any("*" in text for text in texts.values()):
        return
    patterns = {key: _absolute(text, paths) if is_path(key) else text for key, text in texts.items()}
    rule = RuleConfig(arguments=patterns, exact=True, run="unattended")
    yield LastingRule(covers=f"{name} with {_said(patterns, paths)}, and no other arguments", rule=rule)
    for key in sorted(arguments.keys() & _COMMANDS):
        if words := _command_prefix(texts[key]):
            others = {other: pattern for other, pattern in patterns.items() if other != key}
            also = f", and {_said(others, paths)}" if others else ""
            yield LastingRule(
                covers=f"{name} with a {key} that begins with `{words}` and goes on with plain words only (no quotes, "
                f"variables, wildcards, pipes or redirections){also}",
                rule=RuleConfig(arguments=others, prefix={key: words}, exact=True, run="unattended"),
            )


_COMMANDS = frozenset({"command", "cmd"})


def _said(patterns: Mapping[str, str], paths: Paths) -> str:
    texts = {key: _relative(text, paths) if is_path(key) else text for key, text in patterns.items()}
    return ", ".join(f"{key}={text!r}" for key, text in texts.items())


def _command_prefix(command: str) -> str:
    """Return the program of a command, and its subcommand if it has one; empty if it may run any other program."""
    program, _, rest = command.partition(" ")
    if not re.fullmatch(_PROGRAM, program) or posixpath.basename(program) in _RUN_OTHERS:
        return ""
    second = rest.partition(" ")[0]
    return f"{program} {second}" if re.fullmatch(_SUBCOMMAND, second) else program


def _directory_rules(definition: ToolDefinition, arguments: JsonObject, paths: Paths) -> Iterator[LastingRule]:
    """Yield a rule for the directory of the path that a file tool always needs, if it lies in the workspace."""
    keys = [key for key in definition.parameters.get("properties", {}) if is_path(key)]
    if len(keys) != 1 or keys[0] not in definition.parameters.get("required", ()):
        return
    directory = posixpath.dirname(_absolute(str(arguments.get(keys[0], "")), paths))
    if "*" not in directory and f"{directory}/".startswith(f"{paths.root.rstrip('/')}/"):
        rule = RuleConfig(arguments={keys[0]: f"{directory}/**"}, run="unattended")
        yield LastingRule(covers=f"{definition.name} on files below {_relative(directory, paths)!r}", rule=rule)


def _absolute(path: str, paths: Paths) -> str:
    return posixpath.normpath(posixpath.join(paths.root, path))


def check_rules(rules: Iterable[RuleConfig], definition: ToolDefinition) -> None:
    """See that rules for a tool ask for arguments that it has: one that does not can never match.

    Raises:
        ConfigurationError: one asks for another argument, and the tool takes no others.
    """
    schema = definition.parameters
    known = schema.get("properties", {})
    if schema.get("additionalProperties") is not False:
        return
    for name in (name for rule in rules for name in _names_of(rule) if name not in known):
        raise ConfigurationError(
            f"'conversation.tools.{definition.name}.rules' asks for an argument {name!r}, which the tool does not have",
            hint=f"it has {', '.join(map(repr, known)) or 'none'}",
        )


def is_path(argument: str) -> bool:
    """Return whether the name of an argument says that it is a path: `path`, `paths`, `source_file`, `directory`."""
    return re.split(r"[_-]", argument.lower())[-1] in _PATH_WORDS


def _readings(given: Mapping[str, Sequence[str]]) -> Iterator[Reading]:
    for texts in product(*given.values()):
        yield dict(zip(given, texts, strict=True))


def _mode(reading: Reading, names: Collection[str], matchers: Sequence[_Matcher], usual: RunMode) -> RunMode:
    for matcher in matchers:
        if matcher.matches(reading, names):
            return matcher.run
    return usual


def _strictest(modes: Iterable[RunMode]) -> RunMode:
    given = set(modes)
    return next(mode for mode in _STRICTEST_FIRST if mode in given)


def _texts_of(name: str, value: object, paths: Paths) -> list[str]:
    """Return every text that an argument may mean, each once."""
    parts = list(map(_text, value)) if _is_list(value) and value else [_text(value)]
    return list(dict.fromkeys(form for part in parts for form in _forms(name, part, paths)))


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()


def _forms(name: str, text: str, paths: Paths) -> Iterator[str]:
    """Yield what is written, without steps such as `..`, and what the links on the disk make of it.

    Of what may be no path, as it is written, too.
    """
    whole = posixpath.join(paths.root, text)
    written = _without_steps(whole)
    if not is_path(name):
        yield text
    if is_path(name) or _STEP.search(text):
        yield _relative(written, paths)
    for path in (whole, posixpath.normpath(whole)):  # which are not the same where a `..` follows a link
        real = _relative(_real(path, paths), paths)
        if real != _relative(posixpath.normpath(path), paths):
            yield real


def _without_steps(path: str) -> str:
    """Return `path` without `.`, `..` and empty names; an address keeps its two slashes."""
    return posixpath.normpath(path.replace("://", ":\0")).replace(":\0", "://")


def _real(path: str, paths: Paths) -> str:
    try:
        return paths.real(path)
    except (OSError, ValueError):  # no name of a file, whatever it is
        return path


def _relative(path: str, paths: Paths) -> str:
    for root in (paths.root, _real(paths.root, paths)):
        if path == root:
            return "."
        if path.startswith(root.rstrip("/") + "/"):
            return path[len(root.rstrip("/")) + 1 :]
    return path


def _names_of(rule: RuleConfig) -> frozenset[str]:
    return frozenset({*rule.arguments, *rule.prefix})


def _matcher(rule: RuleConfig, paths: Paths) -> _Matcher:
    patterns = [(name, _expression(name, pattern, paths)) for name, pattern in rule.arguments.items()]
    prefixes = [(name, re.compile(re.escape(words) + _FOLLOWING)) for name, words in rule.prefix.items()]
    return _Matcher([*patterns, *prefixes], _names_of(rule) if rule.exact else None, rule.run)


def _expression(name: str, pattern: str, paths: Paths) -> re.Pattern[str]:
    """Return what the text has to match whole. Of paths, `src/**` is `src` and all that is in it."""
    is_tree = is_path(name) and pattern.endswith("/**")
    base = pattern.removesuffix("/**") if is_tree else pattern
    if is_path(name):
        base = _relative(base.removeprefix("./"), paths)
    if is_tree and base == ".":  # the root itself: a path outside of it is absolute
        return re.compile("(?!/).*", re.DOTALL)
    expression = glob_regex(base)
    return re.compile(f"{expression}(?:/.*)?" if is_tree else expression, re.DOTALL)


def glob_regex(pattern: str) -> str:
    """Return a regular expression for the whole of what a pattern matches.

    What follows a wildcard is looked for once, from where it may begin on: the first place is as good as any other,
    because the next wildcard takes what lies between. So no text that a model writes can make it look for ever.
    """
    first, *others = map(_segment_regex, pattern.split("**"))
    if not others:
        return first
    between = "".join(f"(?>.*?{segment})" for segment in others[:-1])
    return f"(?>{first}){between}.*{others[-1]}"


def _segment_regex(segment: str) -> str:
    """Return the same for a pattern without `**`."""
    first, *others = map(re.escape, segment.split("*"))
    if not others:
        return first
    between = "".join(f"(?>[^/]*?{text})" for text in others[:-1])
    return f"{first}{between}[^/]*?{others[-1]}"
