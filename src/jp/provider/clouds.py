"""Models in clouds: settings of an account, and requests signed by the vendor's SDK in a worker thread."""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

import msgspec

from jp import __version__
from jp.config.entries import CloudAccount
from jp.errors import AuthenticationError, ConfigurationError, JpError
from jp.provider.base import WireRequest
from jp.provider.classification import redact
from jp.provider.errors import ProviderError
from jp.provider.http import Account, Adapter, HttpProvider
from jp.provider.keys import FoundKey, StoredKeys, find_key, hint_for_rejected
from jp.provider.reader import Frames, ServerSentEvent
from jp.provider.transport import HttpRequest, Limits
from jp.provider.vendor import Cloud, CloudCall, Vendor
from jp.remedies import SetSettings, StoreKey, phrase

_BEDROCK_KEY = "AWS_BEARER_TOKEN_BEDROCK"
"""Variable with an API key of Bedrock, which its SDK reads."""


def with_environment(cloud: Cloud, environ: Mapping[str, str]) -> Cloud:
    """Return `cloud` with settings of the environment where the configuration has none.

    Raises:
        ConfigurationError: a required setting is missing, or two contradict each other.
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
        message = f"{cloud.setting('profile')!r} and the variable {_BEDROCK_KEY!r} are both set"
        raise ConfigurationError(message, hint=f"unset one of them: `unset {_BEDROCK_KEY}`")


def _unset(cloud: Cloud, name: str, example: str) -> ConfigurationError:
    where = cloud.setting(name)
    return ConfigurationError(
        f"{where!r} is not set", hint=phrase("set it, such as `", SetSettings((f"{where}={example}",)), "`")
    )


def create_cloud(settings: CloudAccount, provider: str, *, vendor: Vendor, kinds: tuple[str, ...] = ()) -> Cloud:
    """Return the cloud that the settings of an account name; `kinds` are the providers with models in clouds.

    Raises:
        ConfigurationError: they name none, or one without models of this kind.
    """
    where = f"providers.llm.{provider}"
    kind, platforms = vendor.id, tuple(vendor.clouds)
    if not platforms:
        message = f"'{where}.transport' is 'sdk', but no cloud has models of kind {kind!r}"
        raise ConfigurationError(message, hint=f"set `{where}.kind` to {_either(kinds)}, or remove `transport`")
    platform = settings.platform or (platforms[0] if len(platforms) == 1 else None)
    if platform is None:
        message = f"'{where}.transport' is 'sdk', but '{where}.platform' is not set"
        raise ConfigurationError(message, hint=f"set it to {_either(platforms)}")
    if getattr(settings, "base_url", None) != getattr(type(settings)(), "base_url", None):
        message = f"'{where}.base_url' is set, which does not apply to a cloud"
        raise ConfigurationError(message, hint=f"remove it, or set the cloud's URL in `{where}.endpoint`")
    if platform not in platforms:
        message = f"'{where}.platform' is {platform!r}, which has no models of kind {kind!r}"
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


CONTENT_TYPE = "application/vnd.amazon.eventstream"


class _Chunk(msgspec.Struct):
    """A message with an encoded event of the model's vendor."""

    bytes: str


class _TypedEvent(msgspec.Struct):
    """Fields of all events."""

    type: str = ""


class _Exception(msgspec.Struct):
    """An error that AWS reports."""

    message: str = ""


class EventStreamFrames:
    """Decoder of Bedrock's event stream into the events of Anthropic's Messages API.

    A message that reports an exception becomes an `error` event, as in Anthropic's own stream.
    """

    def __init__(self) -> None:
        # botocore has no type stubs.
        self._library: Any = import_module("botocore.eventstream")
        self._buffer: Any = self._library.EventStreamBuffer()

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Return the events that more bytes complete.

        Raises:
            ProviderError: the bytes are damaged.
        """
        self._buffer.add_data(data)
        try:
            return [event for message in self._buffer if (event := _event(message)) is not None]
        except (self._library.ParserError, ValueError) as error:  # msgspec's and base64's are ValueErrors
            message = "the stream of Bedrock was damaged in transit"
            raise ProviderError(message, kind="transient") from error

    def close(self) -> list[ServerSentEvent]:
        """Return no events: an incomplete message cannot be read."""
        return []


def _event(message: Any) -> ServerSentEvent | None:
    headers: Mapping[str, object] = message.headers
    payload: bytes = message.payload
    if headers.get(":message-type") != "event":
        return _failure(headers, payload)
    if headers.get(":event-type") != "chunk":
        return None
    data = b64decode(msgspec.json.decode(payload, type=_Chunk).bytes, validate=True)
    return ServerSentEvent(msgspec.json.decode(data, type=_TypedEvent).type, data)


def _failure(headers: Mapping[str, object], payload: bytes) -> ServerSentEvent:
    name = str(headers.get(":exception-type") or headers.get(":error-code") or "internalServerException")
    try:
        text = msgspec.json.decode(payload, type=_Exception).message
    except ValueError:
        text = ""
    text = text or str(headers.get(":error-message") or "")
    error = {"type": "error", "error": {"type": name, "message": text}}
    return ServerSentEvent("error", msgspec.json.encode(error))


INSTALL = "install it: `pip install 'jp[clouds]'`"
_ENTRA = "`pip install azure-identity`, then `az login`, lets jp sign in without a key"
_LONGEST = 300

_NETWORK = frozenset({"TransportError", "HTTPClientError", "ConnectionError", "EndpointConnectionError"})
"""Connection errors of `google.auth`, and the base classes of those of botocore."""

_CREDENTIALS = {
    "bedrock": "check AWS's credentials with `aws sts get-caller-identity`, or run `aws configure` or `aws sso login`",
    "vertex": "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file",
}
_OF_CREDENTIALS = ("botocore", "google.auth", "azure")


def key_hint(cloud: Cloud) -> str:
    """Return the hint for a cloud that rejects the credentials."""
    if cloud.platform in _CREDENTIALS:
        return _CREDENTIALS[cloud.platform]
    return phrase("store a key with `", StoreKey(cloud.provider), f"`, or export {cloud.key_variable}=…; {_ENTRA}")


def missing_package(cloud: Cloud, name: str) -> ConfigurationError:
    """Return the error for a package that is not installed."""
    return ConfigurationError(f"{cloud.title} needs the package {name!r}, which is not installed", hint=INSTALL)


def preparation_error(error: Exception, cloud: Cloud) -> JpError:
    """Return the error to report for `error`, which was raised while a request was prepared."""
    for cause in _causes(error):
        if isinstance(cause, JpError):
            return cause
        if isinstance(cause, ModuleNotFoundError):
            return _not_installed(cloud, cause.name or "?")
    text = _sentence(error)
    is_about_credentials = type(error).__module__.startswith(_OF_CREDENTIALS)
    if is_about_credentials and _NETWORK.intersection(base.__name__ for base in type(error).__mro__):
        return ProviderError(f"cannot get {cloud.title}'s credentials: {text}", kind="connect")
    if is_about_credentials or "credentials" in text or "token" in text:
        return _unauthenticated(cloud, text)
    if isinstance(error, ValueError | RuntimeError):
        return ConfigurationError(f"cannot prepare a request for {cloud.title}: {text}", hint=_settings(cloud))
    return ProviderError(f"cannot prepare a request for {cloud.title}: {text}", kind="other", hint=_settings(cloud))


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
    """Return the message of an error in one line."""
    text = redact(" ".join(str(error).split()), ())
    return (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…") or type(error).__name__


T = TypeVar("T")

_IDENTITY = "azure.identity"

_LEAST_TIMEOUT = 60.0
"""Seconds: an import and several requests for credentials take longer than the usual idle timeout."""


def check_packages(cloud: Cloud) -> None:
    """Check that the SDK of a cloud is installed, without importing it.

    Raises:
        ConfigurationError: a package is not installed.
    """
    for name in cloud.offer.packages:
        if not is_installed(name):
            raise missing_package(cloud, name)


def is_installed(name: str) -> bool:
    """Return whether a package is installed, importing its parents only."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


TIMEOUT = 600.0
"""Timeout in seconds that an SDK sends to a server; it does not limit jp."""

_UNSENT_HEADERS = frozenset({"content-length", "user-agent", "connection", "openai-organization", "openai-project"})
"""Headers of the SDK that are not sent: the transport writes its own, or they belong to another account."""


def sign_request(
    cloud: Cloud, request: WireRequest, *, key: str | None, headers: tuple[tuple[str, str], ...]
) -> HttpRequest:
    """Return the HTTP request for `request`, with the URL and signature of the vendor's SDK for a cloud.

    This may take seconds (an import, a request for credentials). The request is not sent here: the client passed to the
    SDK only records it. `headers` are those of the user's configuration.

    Raises:
        Exception: any error of an SDK.
    """
    import httpx2

    seen: list[httpx2.Request] = []

    class Looking(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            seen.append(request)
            return httpx2.Response(200, headers={"content-type": "application/json"}, content=b"{}", request=request)

    with httpx2.Client(transport=Looking(), trust_env=False) as client:
        call = CloudCall(
            cloud=cloud, request=request, key=key, headers=dict((*request.headers, *headers)), client=client
        )
        if cloud.vendor.send is not None:
            cloud.vendor.send(call)
    (sent,) = seen
    kept = tuple((name, value) for name, value in sent.headers.items() if name.lower() not in _UNSENT_HEADERS)
    return HttpRequest(url=str(sent.url), headers=(*kept, ("user-agent", f"jp/{__version__}")), body=sent.read())


def with_path(address: str | None, path: str) -> str | None:
    """Return a URL with a path, unless it already ends with it."""
    return address if address is None or address.endswith(path) else address + path


def entra_token(scope: str) -> str:
    """Return a token of Microsoft Entra, from any credentials of this machine or its user."""
    from importlib import import_module

    identity: Any = import_module(_IDENTITY)
    return identity.DefaultAzureCredential().get_token(scope).token


class CloudSigner:
    """Signer of requests for one cloud; see `jp.provider.http.Signer`.

    `headers` are those of the user's configuration. `patience` is the idle timeout in seconds, None without a limit.
    """

    def __init__(
        self, cloud: Cloud, *, key: str | None, headers: tuple[tuple[str, str], ...], patience: float | None
    ) -> None:
        self._cloud = cloud
        self._key = key
        self._headers = headers
        self._timeout = None if patience is None else max(patience, _LEAST_TIMEOUT)

    async def sign(self, request: WireRequest) -> HttpRequest:
        """Return the signed request; see the port."""

        def sign() -> HttpRequest:
            return sign_request(self._cloud, request, key=self._key, headers=self._headers)

        try:
            async with asyncio.timeout(self._timeout):
                return await _in_daemon_thread(sign)
        except TimeoutError:
            message = f"{self._cloud.title}'s credentials took too long"
            hint = "`assistant.request.stream_idle_timeout_secs` sets how long jp waits"
            raise ProviderError(message, kind="timeout", hint=hint) from None
        except Exception as error:
            raise preparation_error(error, self._cloud) from error

    def frames(self, headers: Mapping[str, str]) -> Frames | None:
        """Return the splitter of the response; see the port."""
        return EventStreamFrames() if headers.get("content-type", "").startswith(CONTENT_TYPE) else None


async def _in_daemon_thread(work: Callable[[], T]) -> T:
    """Return the result of `work` from a daemon thread: neither cancellation nor the end of the process waits."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(outcome.set_result, work())
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            settle = partial(outcome.set_exception, error)
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(lambda: outcome.done() or settle())

    threading.Thread(target=run, daemon=True).start()
    return await outcome


def create(
    cloud: Cloud,
    adapter: Adapter,
    limits: Limits,
    *,
    headers: tuple[tuple[str, str], ...],
    key: FoundKey | None,
    environ: Mapping[str, str] | None,
) -> HttpProvider:
    """Return the provider of a cloud's models.

    Args:
        cloud: the cloud with its settings.
        adapter: the encoder and decoder of the vendor's API.
        limits: timeouts and size limits of requests.
        headers: headers of the user's configuration.
        key: the API key, for clouds that take one.
        environ: the environment; without it the provider only renders requests, and nothing has to be configured.

    Raises:
        AuthenticationError: the cloud takes a key and there is neither one nor another way to sign in.
        ConfigurationError: a package or a setting is missing.
    """
    if environ is not None:
        check_packages(cloud)
        cloud = with_environment(cloud, environ)
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
    """Return the key for a cloud that takes one; a stored key is never sent to the others.

    Raises:
        JpError: the stored key cannot be read or is not valid.
    """
    return find_key(cloud.provider, variables, environ=environ, stored=stored) if cloud.key_variable else None


def _check_key(cloud: Cloud, key: FoundKey | None) -> None:
    if not cloud.key_variable or key is not None:
        return

    if is_installed(_IDENTITY):
        return

    raise AuthenticationError(
        f"no key for {cloud.provider!r} at {cloud.title}: the environment variable {cloud.key_variable!r} is not set, "
        "and no key is stored",
        hint=key_hint(cloud),
    )


def _key_hint(cloud: Cloud, key: FoundKey | None) -> str:
    if key is not None:
        return hint_for_rejected(cloud.provider, key)

    return key_hint(cloud)
