"""`jp keys`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.app.models import UserKeys, open_key_storage
from jp.cli.options import GlobalOptions, require_persistence

if TYPE_CHECKING:
    from jp.config.model import AppConfig
    from jp.provider.keys import FoundKey


_Provider = Annotated[
    str, typer.Argument(help="A provider such as anthropic, or the name of a server of yours", metavar="PROVIDER")
]


def set_key(
    options: GlobalOptions,
    *,
    provider: _Provider,
    from_stdin: Annotated[bool, typer.Option("--stdin", help="Read the key from standard input")] = False,
) -> None:
    """Store the key of a provider; it replaces a stored one.

    It asks at the terminal and does not show the typed key. The key is stored in the keyring of the operating system
    if jp is installed with its extra `keyring` and a keyring works; otherwise in a file that only you can read. A key
    in the environment wins over a stored one.

    Examples:
        jp keys set anthropic
        jp keys set openrouter
        pass show anthropic | jp keys set anthropic --stdin
    """
    from jp.app.settings import trusted_config
    from jp.cli.output import print_result
    from jp.provider.keys import check_key
    from jp.render.sanitize import keep_secret

    require_persistence(options, "jp keys set")
    _check_provider(options, provider)
    key = _from_stdin(options, provider) if from_stdin else _from_terminal(provider)
    keep_secret(key)
    check_key(key, "the given key", hint="copy the key again, and nothing else")
    found = open_key_storage().store(provider, key)
    shadow = _in_environment(trusted_config(options), provider)
    if shadow is not None:
        options.notice(f"{shadow.where} is set in the environment, and goes before the stored key")
    text = f"the key for {provider} is stored in {found.place}"
    print_result(options, text=text, value={"provider": provider, "source": found.source, "where": found.where})


def ls(options: GlobalOptions) -> None:
    """List the source and the last characters of each key, never the whole key.

    Servers that you have declared under `providers.llm.NAME` come last. A server on this machine usually needs none.
    A key in the environment wins over one in the keyring, which wins over one in the file.

    Examples:
        jp keys ls
        jp keys ls --format json
    """
    import os

    from jp.app.settings import trusted_config
    from jp.cli.output import print_result
    from jp.provider.keys import find_key
    from jp.provider.registry import key_variables, vendor_in, vendors

    settings = trusted_config(options).providers.llm
    found = {
        name: find_key(name, key_variables(settings, name), environ=os.environ, stored=UserKeys())
        for name in (*(vendor.id for vendor in vendors() if vendor.key_variables), *settings.servers)
    }
    width = max(map(len, found), default=0)
    needed = {name: vendor_in(settings, name).needs_key for name in found}
    lines = [f"{name:<{width}}  {_source(name, key, needed=needed[name])}" for name, key in found.items()]
    value = [_as_data(provider, key) for provider, key in found.items()]
    print_result(options, text="\n".join(lines), value={"keys": value})


def remove(options: GlobalOptions, *, provider: _Provider) -> None:
    """Delete the key that is stored for a provider. One in the environment stays.

    Examples:
        jp keys rm anthropic
    """
    from jp.app.settings import trusted_config
    from jp.cli.output import print_result
    from jp.errors import JpError

    require_persistence(options, "jp keys rm")
    _check_provider(options, provider)
    places = open_key_storage().remove(provider)
    left = _in_environment(trusted_config(options), provider)
    if not places:
        hint = f"unset {left.where}, which holds one" if left else "`jp keys ls` lists where keys come from"
        raise JpError(f"no key is stored for {provider!r}", hint=hint)
    if left is not None:
        options.notice(f"{left.where} is still set in the environment")
    where = " and ".join(places)
    print_result(options, text=f"deleted the key for {provider} from {where}", value={"provider": provider})


def _check_provider(options: GlobalOptions, provider: str) -> None:
    from jp.app.settings import trusted_config
    from jp.errors import UsageError
    from jp.provider.registry import vendor_in

    if vendor_in(trusted_config(options).providers.llm, provider).create_adapter is None:
        raise UsageError(f"{provider!r} needs no key", hint="`jp keys ls` lists the providers that do")


def _in_environment(config: AppConfig, provider: str) -> FoundKey | None:
    import os

    from jp.provider.keys import find_key
    from jp.provider.registry import key_variables

    return find_key(provider, key_variables(config.providers.llm, provider), environ=os.environ, stored=None)


def _from_terminal(provider: str) -> str:
    from functools import partial

    from jp.cli.terminal.approval import run_question
    from jp.errors import UsageError
    from jp.render.prompts import ask_secret
    from jp.render.tty import can_ask

    key = run_question(partial(ask_secret, f"Key for {provider} (it is not shown):"))
    if key is None and not can_ask():
        hint = f"give it on standard input: `jp keys set {provider} --stdin`"
        raise UsageError("there is no terminal at which the key could be asked for", hint=hint)
    return _given(key or "", provider)


def _from_stdin(options: GlobalOptions, provider: str) -> str:
    import anyio

    from jp.app.values import read_piped, stdin_source
    from jp.errors import UsageError

    source = stdin_source(asked=True, refused=False)
    if source == "terminal":
        raise UsageError("--stdin reads a pipe or a file, and this is a terminal", hint=f"jp keys set {provider}")

    async def read() -> str:
        text = await read_piped(source, on_idle=lambda: options.notice("reading the key from standard input …"))
        return "" if text is None else text.text.strip()

    return _given(anyio.run(read), provider)


def _given(key: str, provider: str) -> str:
    from jp.errors import UsageError

    if not key:
        raise UsageError("no key was given", hint=f"`jp keys rm {provider}` deletes the stored one")
    return key


def _source(provider: str, found: FoundKey | None, *, needed: bool) -> str:
    if found is None and not needed:
        return "none, and it needs none"
    if found is None:
        return f"none: store one with `jp keys set {provider}`"
    where = f" {found.where}" if found.where else ""
    ending = f"  {found.ending}" if found.ending else ""
    return f"{found.source}{where}{ending}"


def _as_data(provider: str, found: FoundKey | None) -> dict[str, str | None]:
    if found is None:
        return {"provider": provider, "source": "none", "where": None, "ending": None}
    return {
        "provider": provider,
        "source": found.source,
        "where": found.where or None,
        "ending": found.ending or None,
    }
