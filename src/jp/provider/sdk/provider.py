"""A provider in a cloud: the same adapter and the same reading, with requests that the vendor's SDK has signed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jp.errors import AuthenticationError
from jp.provider.clouds import Cloud, completed
from jp.provider.http import Account, Adapter, HttpProvider
from jp.provider.keys import FoundKey, StoredKeys, find_key, hint_for_rejected
from jp.provider.sdk.signer import CloudSigner, check_packages
from jp.provider.transport import Limits

_IDENTITY = "azure.identity"


def create(
    cloud: Cloud,
    adapter: Adapter,
    limits: Limits,
    *,
    headers: tuple[tuple[str, str], ...],
    key: FoundKey | None,
    environ: Mapping[str, str] | None,
) -> HttpProvider:
    """The provider of a cloud's models; `headers` are the user's own.

    Without `environ` it only renders requests, and nothing has to be there.

    Raises:
        AuthenticationError: the cloud takes a key and there is neither one nor another way to sign in.
        ConfigurationError: a package is missing, or a setting.
    """
    if environ is not None:
        check_packages(cloud)
        cloud = completed(cloud, environ)
        _check_key(cloud, key)
    account = Account(
        base_url=cloud.endpoint or "",
        base_url_setting=cloud.setting("endpoint"),
        key=None,
        key_variable=cloud.key_variable,
        needs_key=False,
        key_hint=_key_hint(cloud, key),
        headers=headers,
    )
    signer = CloudSigner(cloud, key=None if key is None else key.key, headers=headers, patience=limits.idle_timeout)
    return HttpProvider(adapter, account, limits, signer=signer)


def cloud_key(
    cloud: Cloud, variables: Sequence[str], *, environ: Mapping[str, str], stored: StoredKeys | None
) -> FoundKey | None:
    """The key for a cloud that takes one; the others are never shown a stored one.

    Raises:
        JpError: what is stored cannot be read, or is no key.
    """
    return find_key(cloud.provider, variables, environ=environ, stored=stored) if cloud.key_variable else None


def _check_key(cloud: Cloud, key: FoundKey | None) -> None:
    if not cloud.key_variable or key is not None:
        return
    from jp.provider.sdk.signer import is_installed

    if is_installed(_IDENTITY):
        return
    from jp.provider.sdk.failures import key_hint

    raise AuthenticationError(
        f"no key for {cloud.provider!r} at {cloud.title}: the environment variable {cloud.key_variable!r} is not set, "
        "and no key is stored",
        hint=key_hint(cloud),
    )


def _key_hint(cloud: Cloud, key: FoundKey | None) -> str:
    if key is not None:
        return hint_for_rejected(cloud.provider, key)
    from jp.provider.sdk.failures import key_hint

    return key_hint(cloud)
