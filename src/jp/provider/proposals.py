"""Which models somebody who has just begun can use: those whose key is there, and those on the user's own machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from jp.provider.local_servers import running_servers
from jp.provider.registry import FACTS, ProviderFacts


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be used, and why, in words; never a key."""

    model: str
    because: str


def proposals(
    environ: Mapping[str, str], *, has_stored_key: Callable[[str], bool], known: Sequence[ProviderFacts] = FACTS
) -> tuple[Proposal, ...]:
    """One model for each provider that can be used here, in the order of `known`.

    `has_stored_key` is asked only where the environment has no key. Servers get a third of a second, all at once.
    """
    servers = {facts.id: facts.server for facts in known if facts.server is not None}
    running = {server.provider: server for server in running_servers(servers, environ)}
    found: list[Proposal] = []
    for facts in known:
        found += _by_key(facts, environ, has_stored_key)
        server = running.get(facts.id)
        if server is not None and server.models:
            model = f"{facts.id}/{server.models[0]}"
            found.append(Proposal(model=model, because=f"a server answers at {server.address}"))
    return tuple(found)


def _by_key(
    facts: ProviderFacts, environ: Mapping[str, str], has_stored_key: Callable[[str], bool]
) -> Iterator[Proposal]:
    if not (facts.proposed and facts.key_variables):
        return
    variable = next((name for name in facts.key_variables if environ.get(name, "").strip()), None)
    if variable is not None:
        yield Proposal(model=facts.proposed, because=f"{variable} is set")
    elif has_stored_key(facts.id):
        yield Proposal(model=facts.proposed, because="its key is stored")
