"""Which cloud an account is with, and what it needs. Pure; imported where there is one.

Where requests go and how they are authenticated is the SDKs' to know: see `jp.provider.sdk`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jp.config.accounts import CloudAccount
from jp.errors import ConfigurationError
from jp.provider.vendor import Cloud, Vendor

_BEDROCK_KEY = "AWS_BEARER_TOKEN_BEDROCK"
"""Bedrock's own keys, which its SDK finds by itself."""


def completed(cloud: Cloud, environ: Mapping[str, str]) -> Cloud:
    """`cloud` with what the environment says of it where the settings are silent.

    Raises:
        ConfigurationError: neither says what there is no default for, or they contradict each other.
    """
    offer = cloud.offer
    values: dict[str, str] = {}
    for name, variables in offer.variables.items():
        values[name] = next(filter(None, (environ.get(variable, "").strip() for variable in variables)), "")
    variable, address = offer.resource
    if resource := environ.get(variable, "").strip():
        values["endpoint"] = values.get("endpoint") or address.format(resource)
    known = {**offer.defaults, **{name: value for name, value in values.items() if value}}
    values = {name: value for name, value in known.items() if getattr(cloud, name) is None}
    if "endpoint" in values:
        values["endpoint"] = values["endpoint"].rstrip("/")
    cloud = msgspec.structs.replace(cloud, **values)
    _check(cloud, environ)
    return cloud


def _check(cloud: Cloud, environ: Mapping[str, str]) -> None:
    for name, example in cloud.offer.required.items():
        if getattr(cloud, name) is None:
            raise _unset(cloud, name, example)
    if cloud.platform == "vertex" and cloud.endpoint is not None and cloud.project is None:
        raise _unset(cloud, "project", "PROJECT")
    if cloud.platform == "bedrock" and cloud.profile is not None and environ.get(_BEDROCK_KEY, "").strip():
        message = f"{cloud.setting('profile')!r} is set, and so is the variable {_BEDROCK_KEY!r}: which of them counts?"
        raise ConfigurationError(message, hint=f"unset one of them: `unset {_BEDROCK_KEY}`")


def _unset(cloud: Cloud, name: str, example: str) -> ConfigurationError:
    where = cloud.setting(name)
    return ConfigurationError(f"{where!r} is not set", hint=f"set it, such as `jp config set {where}={example}`")


def create_cloud(settings: CloudAccount, provider: str, *, vendor: Vendor, kinds: tuple[str, ...] = ()) -> Cloud:
    """Return the cloud that the settings of an account name; `kinds` are those of which clouds have models.

    Raises:
        ConfigurationError: they name none, or one that does not have the models of this kind.
    """
    where = f"providers.llm.{provider}"
    kind, platforms = vendor.id, tuple(vendor.clouds)
    if not platforms:
        message = f"'{where}.transport' is 'sdk', but no SDK knows a cloud for what speaks as {kind!r} does"
        raise ConfigurationError(message, hint=f"set `{where}.kind` to {_either(kinds)}, or leave `transport` out")
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
        vendor=vendor,
        platform=platform,
        endpoint=None if settings.endpoint is None else settings.endpoint.rstrip("/"),
        region=settings.region,
        project=settings.project,
        profile=settings.profile,
        api_version=settings.api_version,
    )


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)
