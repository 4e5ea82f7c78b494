"""What goes wrong where an SDK prepares a request, in our words. Imported when it does."""

from __future__ import annotations

from collections.abc import Iterator

from jp.errors import ConfigurationError, JpError
from jp.provider.classification import redact
from jp.provider.clouds import Cloud
from jp.provider.errors import ProviderError

INSTALL = "install what it takes: `pip install 'jp[sdk]'`"
_ENTRA = "`pip install azure-identity`, then `az login`, lets jp sign in without a key"
_LONGEST = 300

_NETWORK = frozenset({"TransportError", "HTTPClientError", "ConnectionError", "EndpointConnectionError"})
"""The errors of `google.auth`, and those that all of botocore's have above them, where nobody was reached."""

_CREDENTIALS = {
    "bedrock": "check AWS's credentials: `aws sts get-caller-identity`; `aws configure` or `aws sso login` makes some",
    "vertex": "`gcloud auth application-default login` makes some, or GOOGLE_APPLICATION_CREDENTIALS names their file",
}
_OF_CREDENTIALS = ("botocore", "google.auth", "azure")


def key_hint(cloud: Cloud) -> str:
    """What mends it where the cloud takes none of what it is shown."""
    if cloud.platform in _CREDENTIALS:
        return _CREDENTIALS[cloud.platform]
    return f"store a key with `jp keys set {cloud.provider}`, or export {cloud.key_variable}=…; {_ENTRA}"


def missing_package(cloud: Cloud, name: str) -> ConfigurationError:
    """A package is not installed."""
    return ConfigurationError(f"{cloud.title} takes the package {name!r}, which is not installed", hint=INSTALL)


def failure(error: Exception, cloud: Cloud) -> JpError:
    """What `error`, raised while a request was prepared, means."""
    for cause in _causes(error):
        if isinstance(cause, JpError):
            return cause
        if isinstance(cause, ModuleNotFoundError):
            return _not_installed(cloud, cause.name or "?")
    text = _sentence(error)
    is_about_credentials = type(error).__module__.startswith(_OF_CREDENTIALS)
    if is_about_credentials and _NETWORK.intersection(base.__name__ for base in type(error).__mro__):
        return ProviderError(f"{cloud.title}'s credentials cannot be had: {text}", kind="connect")
    if is_about_credentials or "credentials" in text or "token" in text:
        return _unauthenticated(cloud, text)
    if isinstance(error, ValueError | RuntimeError):
        return ConfigurationError(f"no request can be made for {cloud.title}: {text}", hint=_settings(cloud))
    return ProviderError(f"no request can be made for {cloud.title}: {text}", kind="other", hint=_settings(cloud))


def _not_installed(cloud: Cloud, package: str) -> JpError:
    if package.partition(".")[0] == "azure":
        return _unauthenticated(cloud, "there is neither a key nor another way to sign in")
    return missing_package(cloud, package)


def _unauthenticated(cloud: Cloud, text: str) -> ProviderError:
    return ProviderError(f"no credentials for {cloud.title}: {text}", kind="authentication", hint=key_hint(cloud))


def _settings(cloud: Cloud) -> str:
    match cloud.platform:
        case "bedrock":
            names = ("region", "profile")
        case "vertex":
            names = ("project", "region")
        case "foundry" | "azure":
            names = ("endpoint",)
    return "check " + " and ".join(f"`{cloud.setting(name)}`" for name in names)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _sentence(error: Exception) -> str:
    """What an error says, in one line."""
    text = redact(" ".join(str(error).split()), ())
    return (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…") or type(error).__name__
