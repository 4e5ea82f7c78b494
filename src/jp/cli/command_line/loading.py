"""From a row of the command table to a Typer command: imported, built and invoked only when it is asked for."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import typer
from typer import BadParameter
from typer.core import TyperArgument, TyperCommand, TyperOption
from typer.main import get_command
from typer.models import Context, OptionInfo, ParameterInfo

from jp.cli.command_line.argv import Option
from jp.cli.command_line.commands import Command
from jp.cli.options import GlobalOptions
from jp.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from jp.cli.command_line.help import Page


SLOT = "_runtime_param"

Reader = Callable[[Any], object]


class PlainValue:
    """Replaces Typer's adapter of one parameter."""

    def __init__(self, read: Reader) -> None:
        self._read = read

    def coerce(self, value: Any, param: TyperArgument | TyperOption, ctx: Context) -> object:
        """Return the value that the command gets for the typed text, or for the default.

        Raises:
            BadParameter: the text is not a value of the parameter's type.
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


class OptionalValue(OptionInfo):
    """An option that takes a value only with `=`; bare, it means `bare`."""

    def __init__(
        self, *names: str, bare: str, metavar: str, help_text: str, reads: Callable[[str], bool] | None = None
    ) -> None:
        super().__init__(default=..., param_decls=names, metavar=f"[={metavar}]", help=help_text)
        self.bare = bare
        self.reads = reads


class BoundValue(OptionalValue):
    """An option that also takes the next word where that is a bound of a range of turns, or `reads` as one."""


class SwitchedValue(OptionalValue):
    """An option and its opposite, whose values come to one list in the order in which they are typed.

    `off` are the forms of the opposite; `MARK` stands before their values.
    """

    MARK = "!"

    def __init__(self, *names: str, off: tuple[str, ...], bare: str, metavar: str, help_text: str) -> None:
        super().__init__(*names, *off, bare=bare, metavar=metavar, help_text=help_text)
        self.name = max(names, key=len)
        self.off = off


def is_usual_profile(word: str) -> bool:
    """Return whether `word` is a profile of compaction that comes with jp."""
    return word in {"default", "heavy", "light"}


def optional_value(
    *names: str, bare: str, metavar: str, help_text: str, reads: Callable[[str], bool] | None
) -> OptionalValue:
    """Declare `--name[=METAVAR]`, for use inside `Annotated[str | None, ...]` with the default None.

    `bare` is the value that the option has where it is given without one. It never takes the next word, and refuses one
    that `reads` as its value: None where any text is one.
    """
    return OptionalValue(*names, bare=bare, metavar=metavar, help_text=help_text, reads=reads)


def switched_value(*names: str, off: tuple[str, ...], bare: str, metavar: str, help_text: str) -> SwitchedValue:
    """Declare `--name[=METAVAR]` and its opposite, for use inside `Annotated[list[str] | None, ...]`.

    A value of the forms `off` begins with `SwitchedValue.MARK`.
    """
    return SwitchedValue(*names, off=off, bare=bare, metavar=metavar, help_text=help_text)


def bound_value(*names: str, bare: str, help_text: str, reads: Callable[[str], bool] | None = None) -> BoundValue:
    """Declare `--from BOUND` and its like: with `=`, with the next word where it is a bound, or bare.

    A next word that `reads` as a mistyped bound is taken, too, so that the command can refuse it.
    """
    return BoundValue(*names, bare=bare, metavar="BOUND", help_text=help_text, reads=reads)


class LoadedCommand:
    """A command that can be described and invoked.

    `plain` says for each parameter whether its values are read without pydantic.
    """

    def __init__(self, command: Command, path: tuple[str, ...]) -> None:
        """Import and build `command`, whose full name, `jp` included, is `path`."""
        module, _, function = command.target.partition(":")
        self.name = " ".join(path)
        self.command = build(getattr(import_module(module), function))
        self.parameters = [p for p in self.command.params if isinstance(p, TyperArgument | TyperOption)]
        self.plain = {parameter.name: make_plain(parameter) for parameter in self.parameters}

    def options(self) -> dict[str, Option]:
        """Return the syntax of each form of the command's own options."""
        options: dict[str, Option] = {}
        for parameter in self.parameters:
            if isinstance(parameter, TyperOption):
                option = _read_as(parameter)
                options |= dict.fromkeys((*parameter.opts, *parameter.secondary_opts), option)
                options |= _opposites(parameter)
        return options

    def page(self) -> Page:
        """Return the command's help."""
        from jp.cli.command_line.help import Page

        arguments = [p for p in self.parameters if isinstance(p, TyperArgument)]
        options = [p for p in self.parameters if isinstance(p, TyperOption)]
        usage = " ".join([self.name, "[OPTIONS]", *map(_usage_of, arguments)])
        return Page(
            usage=usage,
            text=self.command.help or "",
            footer="jp --help lists the options that every command has.",
            sections=(
                ("Arguments", tuple((_name_of(p), p.help or "") for p in arguments if p.help)),
                ("Options", tuple((_forms_of(p), _with_default(p)) for p in options if not p.hidden)),
            ),
        )

    def invoke(self, arguments: Sequence[str], options: GlobalOptions) -> int:
        """Run the command; its exit code.

        Raises:
            UsageError: the arguments are not those of the command.
        """
        try:
            with self.command.make_context(self.name, list(arguments), obj=options) as context:
                code = self.command.invoke(context)
        except typer.Exit as stop:
            return stop.exit_code
        except typer.TyperException as error:
            raise self._usage_error(error) from error
        return ExitCode.OK if code is None else int(code)

    def _usage_error(self, error: typer.TyperException) -> UsageError:
        message = error.format_message().rstrip(".")
        return UsageError(
            f"{message[:1].lower()}{message[1:]}", hint=f"usage: {self.page().usage}; see {self.name} --help"
        )


def build(function: Callable[..., object]) -> TyperCommand:
    """Return the Typer command that calls `function` with the global options and the parsed values."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(add_help_option=False)(_receive_options(function))
    command = get_command(app)
    if not isinstance(command, TyperCommand):
        raise TypeError(f"{function!r} became {command!r}")
    return command


def _receive_options(function: Callable[..., object]) -> Callable[..., object]:
    """Return `function` in the form that Typer needs: its first parameter is the context with the global options."""
    signature = inspect.signature(function, eval_str=True)
    _, *parameters = signature.parameters.values()
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    def call(*, context: typer.Context, **arguments: Any) -> object:
        return function(context.obj, **arguments)

    call.__doc__ = function.__doc__
    call.__name__ = function.__name__
    call.__annotations__ = {}
    call.__signature__ = signature.replace(parameters=[context, *parameters])
    return call


def _read_as(parameter: TyperOption) -> Option:
    name = max(parameter.opts, key=len)
    match parameter.type_descriptor.parameter_info:
        case SwitchedValue(name=name, bare=bare):
            return Option(name, "optional", bare=bare)
        case BoundValue(bare=bare, reads=reads):
            return Option(name, "bound", bare=bare, reads=reads)
        case OptionalValue(bare=bare, reads=reads):
            return Option(name, "optional", bare=bare, reads=reads)
        case _:
            return Option(name, "flag" if parameter.is_flag or parameter.count else "value")


def _opposites(parameter: TyperOption) -> dict[str, Option]:
    match parameter.type_descriptor.parameter_info:
        case SwitchedValue(name=name, off=off, bare=bare):
            return dict.fromkeys(off, Option(name, "optional", bare=bare, mark=SwitchedValue.MARK))
        case _:
            return {}


def _usage_of(argument: TyperArgument) -> str:
    return _name_of(argument) if argument.required else f"[{_name_of(argument)}]"


def _name_of(argument: TyperArgument) -> str:
    name = argument.metavar or argument.name.upper()
    return f"{name}…" if argument.nargs == -1 and not name.endswith(("…", "...")) else name


def _forms_of(option: TyperOption) -> str:
    """Return `-a, --attach URI`; an optional value's metavar is written `[=VALUE]`, next to the option."""
    forms = ", ".join(sorted((*option.opts, *option.secondary_opts), key=len))
    if option.is_flag or option.count:
        return forms
    metavar = option.metavar or option.name.upper()
    return f"{forms}{metavar}" if metavar.startswith("[") else f"{forms} {metavar}"


def _with_default(option: TyperOption) -> str:
    text = option.help or ""
    shown = option.show_default and not option.is_flag and option.default not in (None, "", 0)
    return f"{text} [default: {option.default}]" if shown else text
