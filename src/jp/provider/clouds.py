"""Which cloud an account is with, and what it needs. Pure; imported where there is one.

Where requests go and how they are authenticated is the SDKs' to know: see `jp.provider.sdk`.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from jp.config.accounts import Platform
from jp.errors import ConfigurationError

PLATFORMS: dict[str, tuple[Platform, ...]] = {
    "anthropic": ("bedrock", "vertex", "foundry"),
    "openai": ("azure",),
    "google": ("vertex",),
}
"""Where the models of a kind of provider are, by the SDK of its vendor."""

TITLES: dict[Platform, str] = {"bedrock": "Bedrock", "vertex": "Vertex AI", "foundry": "Foundry", "azure": "Azure"}

_KEYS: dict[Platform, str] = {"foundry": "ANTHROPIC_FOUNDRY_API_KEY", "azure": "AZURE_OPENAI_API_KEY"}
"""The variables of those that take keys; the others know credentials of their own."""


class CloudSettings(Protocol):
    """What an account says of a cloud; see `jp.config.accounts.CloudAccount`."""

    @property
    def transport(self) -> str: ...

    @property
    def platform(self) -> Platform | None: ...

    @property
    def endpoint(self) -> str | None: ...

    @property
    def region(self) -> str | None: ...

    @property
    def project(self) -> str | None: ...

    @property
    def profile(self) -> str | None: ...

    @property
    def api_version(self) -> str | None: ...


class Cloud(msgspec.Struct, frozen=True, kw_only=True):
    """An account with a cloud. `provider` is under what name it is known, `kind` what it speaks."""

    provider: str
    kind: str
    platform: Platform
    endpoint: str | None = None
    region: str | None = None
    project: str | None = None
    profile: str | None = None
    api_version: str | None = None

    @property
    def title(self) -> str:
        """What the cloud is called."""
        return TITLES[self.platform]

    @property
    def key_variable(self) -> str:
        """The variable that usually holds its key; empty where it takes none."""
        return _KEYS.get(self.platform, "")

    def setting(self, name: str) -> str:
        """The full name of one of its settings."""
        return f"providers.llm.{self.provider}.{name}"


def create_cloud(settings: CloudSettings, provider: str, *, kind: str) -> Cloud:
    """The cloud that the settings of an account name.

    Raises:
        ConfigurationError: they name none, or one that does not have the models of this kind.
    """
    where = f"providers.llm.{provider}"
    platforms = PLATFORMS.get(kind, ())
    if not platforms:
        message = f"'{where}.transport' is 'sdk', but no SDK knows a cloud for what speaks as {kind!r} does"
        hint = f"set `{where}.kind` to {_either(tuple(PLATFORMS))}, or leave `transport` out"
        raise ConfigurationError(message, hint=hint)
    platform = settings.platform or (platforms[0] if len(platforms) == 1 else None)
    if platform is None:
        message = f"'{where}.transport' is 'sdk', but '{where}.platform' is not set"
        raise ConfigurationError(message, hint=f"set it to {_either(platforms)}")
    if platform not in platforms:
        message = f"'{where}.platform' is {platform!r}, where there is nothing that speaks as {kind!r} does"
        raise ConfigurationError(message, hint=f"set it to {_either(platforms)}")
    return Cloud(
        provider=provider,
        kind=kind,
        platform=platform,
        endpoint=None if settings.endpoint is None else settings.endpoint.rstrip("/"),
        region=settings.region,
        project=settings.project,
        profile=settings.profile,
        api_version=settings.api_version,
    )


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)
