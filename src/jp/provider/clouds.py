"""Which cloud an account is with, and what it needs. Pure; imported where there is one.

Where requests go and how they are authenticated is the SDKs' to know: see `jp.provider.sdk`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jp.config.accounts import CloudAccount, Platform
from jp.errors import ConfigurationError

PLATFORMS: dict[str, tuple[Platform, ...]] = {
    "anthropic": ("bedrock", "vertex", "foundry"),
    "openai": ("azure",),
    "google": ("vertex",),
}
"""Where the models of a kind of provider are, by the SDK of its vendor."""

TITLES: dict[Platform, str] = {"bedrock": "Bedrock", "vertex": "Vertex AI", "foundry": "Foundry", "azure": "Azure"}

_BEDROCK_KEY = "AWS_BEARER_TOKEN_BEDROCK"
"""Bedrock's own keys, which its SDK finds by itself."""

_KEYS: dict[Platform, str] = {"foundry": "ANTHROPIC_FOUNDRY_API_KEY", "azure": "AZURE_OPENAI_API_KEY"}
"""The variables of those that take keys; the others know credentials of their own."""


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


_FROM_ENVIRONMENT: dict[tuple[str, Platform], dict[str, tuple[str, ...]]] = {
    ("anthropic", "bedrock"): {
        "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
        "endpoint": ("ANTHROPIC_BEDROCK_BASE_URL",),
    },
    ("anthropic", "vertex"): {
        "region": ("CLOUD_ML_REGION",),
        "project": ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"),
        "endpoint": ("ANTHROPIC_VERTEX_BASE_URL",),
    },
    ("anthropic", "foundry"): {"endpoint": ("ANTHROPIC_FOUNDRY_BASE_URL",)},
    ("openai", "azure"): {"endpoint": ("AZURE_OPENAI_ENDPOINT",), "api_version": ("OPENAI_API_VERSION",)},
    ("google", "vertex"): {
        "region": ("GOOGLE_CLOUD_LOCATION",),
        "project": ("GOOGLE_CLOUD_PROJECT",),
    },
}
"""The variables by which the SDKs know what is not set here."""

_FOUNDRY_RESOURCE = "ANTHROPIC_FOUNDRY_RESOURCE"


def completed(cloud: Cloud, environ: Mapping[str, str]) -> Cloud:
    """`cloud` with what the environment says of it where the settings are silent.

    Raises:
        ConfigurationError: neither says what there is no default for, or they contradict each other.
    """
    values: dict[str, str] = {}
    for name, variables in _FROM_ENVIRONMENT[cloud.kind, cloud.platform].items():
        if getattr(cloud, name) is None:
            values[name] = next(filter(None, (environ.get(variable, "").strip() for variable in variables)), "")
    values = {name: value for name, value in values.items() if value}
    resource = environ.get(_FOUNDRY_RESOURCE, "").strip()
    if cloud.platform == "foundry" and cloud.endpoint is None and resource:
        values.setdefault("endpoint", f"https://{resource}.services.ai.azure.com")
    if (cloud.kind, cloud.platform) == ("google", "vertex") and cloud.region is None:
        values.setdefault("region", "global")
    if "endpoint" in values:
        values["endpoint"] = values["endpoint"].rstrip("/")
    cloud = msgspec.structs.replace(cloud, **values)
    _check(cloud, environ)
    return cloud


def _check(cloud: Cloud, environ: Mapping[str, str]) -> None:
    if cloud.platform in {"azure", "foundry"} and cloud.endpoint is None:
        host = "openai.azure.com" if cloud.platform == "azure" else "services.ai.azure.com"
        raise _unset(cloud, "endpoint", f"https://RESOURCE.{host}")
    if (cloud.kind, cloud.platform) == ("anthropic", "vertex") and cloud.region is None:
        raise _unset(cloud, "region", "global")
    if cloud.platform == "vertex" and cloud.endpoint is not None and cloud.project is None:
        raise _unset(cloud, "project", "PROJECT")
    if cloud.platform == "bedrock" and cloud.profile is not None and environ.get(_BEDROCK_KEY, "").strip():
        message = f"{cloud.setting('profile')!r} is set, and so is the variable {_BEDROCK_KEY!r}: which of them counts?"
        raise ConfigurationError(message, hint=f"unset one of them: `unset {_BEDROCK_KEY}`")


def _unset(cloud: Cloud, name: str, example: str) -> ConfigurationError:
    where = cloud.setting(name)
    return ConfigurationError(f"{where!r} is not set", hint=f"set it, such as `jp config set {where}={example}`")


def create_cloud(settings: CloudAccount, provider: str, *, kind: str) -> Cloud:
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
    if getattr(settings, "base_url", None) != getattr(type(settings)(), "base_url", None):
        message = f"'{where}.base_url' is set, which says nothing of a cloud"
        raise ConfigurationError(message, hint=f"leave it out, or say the cloud's address in `{where}.endpoint`")
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
