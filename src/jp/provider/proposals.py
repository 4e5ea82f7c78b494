"""Which models somebody who has just begun can use: those whose key is there, and those on the user's own machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from jp.config.model import LlmConfig
from jp.provider.local_servers import running_servers
from jp.provider.registry import FACTS, ProviderFacts, account_of


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be used, and why, in words; never a key."""

    model: str
    because: str


def proposals(
    settings: LlmConfig,
    environ: Mapping[str, str],
    *,
    has_stored_key: Callable[[str], bool],
    known: Sequence[ProviderFacts] = FACTS,
) -> tuple[Proposal, ...]:
    """One model for each provider that can be used here, in the order of `known`.

    `has_stored_key` is asked only where the environment has no key. Servers get a third of a second, all at once.
    """
    servers = {facts.id: facts.server for facts in known if facts.server is not None}
    addresses = _configured(settings, servers)
    running = {server.provider: server for server in running_servers(servers, environ, configured=addresses)}
    found: list[Proposal] = []
    for facts in known:
        found += _by_key(facts, settings, environ, has_stored_key)
        server = running.get(facts.id)
        models = () if server is None else _conversing(server.models)
        if server is not None and models:
            model = f"{facts.id}/{models[0]}"
            found.append(Proposal(model=model, because=f"a server answers at {server.address}"))
    return tuple(found)


def _configured(settings: LlmConfig, servers: Collection[str]) -> dict[str, str]:
    """Where servers are that are not where they usually are."""
    addresses: dict[str, str] = {}
    for provider in servers:
        account, usual = account_of(settings, provider), account_of(LlmConfig(), provider)
        if account is not None and account.base_url and (usual is None or account.base_url != usual.base_url):
            addresses[provider] = account.base_url
    return addresses


def _conversing(models: Sequence[str]) -> Sequence[str]:
    """Those of a server's models that may answer a question: their names are all that it says of them."""
    return [model for model in models if "embed" not in model.lower()]


def _by_key(
    facts: ProviderFacts, settings: LlmConfig, environ: Mapping[str, str], has_stored_key: Callable[[str], bool]
) -> Iterator[Proposal]:
    if not (facts.proposed and facts.key_variables):
        return
    account = account_of(settings, facts.id)
    configured = () if account is None or account.api_key_env is None else (account.api_key_env,)
    variable = next((name for name in (*configured, *facts.key_variables) if environ.get(name, "").strip()), None)
    if variable is not None:
        yield Proposal(model=facts.proposed, because=f"{variable} is set")
    elif has_stored_key(facts.id):
        yield Proposal(model=facts.proposed, because="its key is stored")
