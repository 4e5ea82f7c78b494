"""Fetch the model lists of several providers at once, show the progress, and cache the lists."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.cli.options import GlobalOptions
from jp.config.model import AppConfig
from jp.errors import AuthenticationError, ExitCode, JpError
from jp.provider.http import Account
from jp.provider.registry import built_in, create_account, kind_of, limits_of, vendor_in, vendor_of
from jp.remedies import phrase

if TYPE_CHECKING:
    from jp.provider.catalogue import CachedCatalogue, CatalogueStore


_AT_ONCE = 8


class RefreshResult(msgspec.Struct, kw_only=True):
    """The answers: what is cached for each provider, why others failed, and which were not asked."""

    kept: dict[str, CachedCatalogue] = {}
    failed: dict[str, JpError] = {}
    keyless: list[str] = []
    absent: list[str] = []


def refresh(
    options: GlobalOptions, config: AppConfig, providers: Sequence[str], *, named: bool
) -> RefreshResult | ExitCode:
    """Ask the providers; the exit code where somebody stopped it.

    Those that were not `named` are only asked where there is a key for them, and a server of the user's own machine
    need not be there.
    """
    import anyio

    from jp.cli.terminal.signals import interruptions

    asked = RefreshResult()
    accounts = _accounts(config, providers, asked, named=named)

    async def run() -> ExitCode | None:
        with interruptions() as interruption:
            await _ask(options, config, accounts, asked)
        return interruption.exit_code

    stopped = anyio.run(run) if accounts else None
    if stopped is not None:
        return stopped
    if not named:
        _forgive_absence(config, asked)
    return asked


def _accounts(config: AppConfig, providers: Sequence[str], asked: RefreshResult, *, named: bool) -> dict[str, Account]:
    from jp.app.models import UserKeys

    accounts: dict[str, Account] = {}
    settings, stored = config.providers.llm, UserKeys()
    for provider in providers:
        vendor = built_in(provider)
        needs_key = not (named and vendor is not None and vendor.models.is_public)
        try:
            accounts[provider] = create_account(
                settings, provider, environ=os.environ, stored=stored, needs_key=needs_key
            )
        except AuthenticationError as error:
            if named:
                asked.failed[provider] = error
            else:
                asked.keyless.append(provider)
        except JpError as error:
            asked.failed[provider] = error
    return accounts


def _forgive_absence(config: AppConfig, asked: RefreshResult) -> None:
    for provider, error in [*asked.failed.items()]:
        is_local = vendor_in(config.providers.llm, provider).server is not None
        if is_local and getattr(error, "kind", "") == "connect":
            del asked.failed[provider]
            asked.absent.append(provider)


async def _ask(
    options: GlobalOptions, config: AppConfig, accounts: Mapping[str, Account], asked: RefreshResult
) -> None:
    from anyio import CapacityLimiter, create_task_group

    from jp.app.models import catalogue_store

    store = catalogue_store()
    places = CapacityLimiter(_AT_ONCE)
    left = dict.fromkeys(accounts)

    def waiting() -> str:
        return f"waiting for the models of {', '.join(left)}"

    async def ask(provider: str, account: Account) -> None:
        async with places:
            try:
                asked.kept[provider] = await _fetched(options, config, provider, account, store)
            except JpError as error:
                asked.failed[provider] = error
        del left[provider]
        tell(waiting())

    with options.progress(waiting()) as tell:
        async with create_task_group() as tasks:
            for provider, account in accounts.items():
                tasks.start_soon(ask, provider, account)


async def _fetched(
    options: GlobalOptions, config: AppConfig, provider: str, account: Account, store: CatalogueStore
) -> CachedCatalogue:
    from jp.provider.catalogue import CachedCatalogue, Catalogue
    from jp.provider.discovery import Server, fetch_models
    from jp.workspace.files import SYSTEM, timestamp

    vendor = vendor_of(kind_of(config.providers.llm, provider))
    server = Server(provider, vendor, account, limits_of(config.assistant.request))
    fetched = await fetch_models(server)
    catalogue = Catalogue(
        provider=provider,
        base_url=account.base_url,
        at=timestamp(SYSTEM.now()),
        models=fetched.models,
        skipped=fetched.skipped,
    )
    if options.persist:
        try:
            store.write(catalogue)
        except JpError as error:
            options.notice(phrase(f"the models of {provider} are not kept: ", error.message))
    return CachedCatalogue(catalogue=catalogue)
