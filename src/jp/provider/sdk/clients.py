"""What an SDK makes of a request: its address, its credentials and its form, as each cloud wants them.

All of this may take its time (an import, a call for credentials), so it runs in a thread of its own. Nothing of the
request goes over the wire here: the client that an SDK is given only looks at what it would send.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from jp import __version__
from jp.provider.base import WireRequest
from jp.provider.clouds import Cloud
from jp.provider.transport import HttpRequest

if TYPE_CHECKING:
    import httpx2

_ENTRA_SCOPES = {"azure": "https://cognitiveservices.azure.com/.default", "foundry": "https://ai.azure.com/.default"}

_REPLACED = "-"
"""Stands where a signature wants contents; the body of the request goes before it."""

_VERSION = "anthropic-version"
_BODY_VERSIONS = {"bedrock": "bedrock-2023-05-31", "vertex": "vertex-2023-10-16"}
"""What these call the version of the API that requests are rendered for; an SDK would put its own."""

_TIMEOUT = 600.0
"""An SDK tells a server how long it waits; how long jp does is not this."""

_LEFT_OUT = frozenset({"content-length", "user-agent", "connection", "openai-organization", "openai-project"})
"""Headers that the transport writes itself, no signature covers them, and those that are for another account."""


def signed(cloud: Cloud, request: WireRequest, *, key: str | None, headers: tuple[tuple[str, str], ...]) -> HttpRequest:
    """What goes over the wire for `request`. `headers` are the user's own.

    Raises:
        Exception: whatever an SDK raises where it lacks something; see `jp.provider.sdk.signer`.
    """
    import httpx2

    seen: list[httpx2.Request] = []

    class Looking(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            seen.append(request)
            return httpx2.Response(200, headers={"content-type": "application/json"}, content=b"{}", request=request)

    more = dict((*request.headers, *headers))
    options = {"headers": more, "timeout": _TIMEOUT}
    with httpx2.Client(transport=Looking(), trust_env=False) as client:
        match cloud.kind:
            case "anthropic":
                body = request.body
                if cloud.platform in _BODY_VERSIONS:
                    more.pop(_VERSION, None)
                    body = {**body, "anthropic_version": _BODY_VERSIONS[cloud.platform]}
                sdk = _anthropic(cloud, key, client)
                sdk.post(request.path, cast_to=httpx2.Response, body=body, options=options)
            case "openai":
                path = request.path.removeprefix("/v1")
                sdk = _openai(cloud, key, client)
                sdk.post(path, cast_to=httpx2.Response, body=request.body, options=options)
            case _:
                _google(cloud, request, more, client)
    (sent,) = seen
    kept = tuple((name, value) for name, value in sent.headers.items() if name.lower() not in _LEFT_OUT)
    return HttpRequest(url=str(sent.url), headers=(*kept, ("user-agent", f"jp/{__version__}")), body=sent.read())


def _anthropic(cloud: Cloud, key: str | None, client: httpx2.Client) -> Any:
    match cloud.platform:
        case "bedrock":
            from anthropic.lib.bedrock import AnthropicBedrock

            return AnthropicBedrock(
                aws_region=cloud.region,
                aws_profile=cloud.profile,
                base_url=cloud.endpoint,
                http_client=client,
                timeout=_TIMEOUT,
                max_retries=0,
            )
        case "vertex":
            from anthropic.lib.vertex import AnthropicVertex

            project: dict[str, Any] = {} if cloud.project is None else {"project_id": cloud.project}
            return AnthropicVertex(
                region=cloud.region or "",
                base_url=_below(cloud.endpoint, "/v1"),
                http_client=client,
                timeout=_TIMEOUT,
                max_retries=0,
                **project,
            )
        case _:
            from anthropic import AnthropicFoundry

            return AnthropicFoundry(
                base_url=_below(cloud.endpoint, "/anthropic") or "",
                api_key=key,
                azure_ad_token_provider=partial(_entra_token, cloud) if key is None else None,
                http_client=client,
                timeout=_TIMEOUT,
                max_retries=0,
            )


def _openai(cloud: Cloud, key: str | None, client: httpx2.Client) -> Any:
    import openai

    if cloud.api_version is None:
        return openai.OpenAI(
            base_url=_below(cloud.endpoint, "/openai/v1"),
            api_key=_entra_token(cloud) if key is None else key,
            http_client=client,
            timeout=_TIMEOUT,
            max_retries=0,
        )
    token = _entra_token(cloud) if key is None else None
    return openai.AzureOpenAI(
        azure_endpoint=cloud.endpoint or "",
        api_version=cloud.api_version,
        api_key=key,
        azure_ad_token=token,
        http_client=client,
        timeout=_TIMEOUT,
        max_retries=0,
    )


def _google(cloud: Cloud, request: WireRequest, headers: dict[str, str], client: httpx2.Client) -> None:
    import logging

    # It warns of variables that do not count here.
    logging.getLogger("google_genai").setLevel(logging.ERROR)
    from google import genai

    options: Any = {"httpx_client": client, "headers": headers, "extra_body": request.body}
    if cloud.endpoint is not None:
        options["base_url"] = cloud.endpoint
    if cloud.api_version is not None:
        options["api_version"] = cloud.api_version
    sdk: Any = genai.Client(vertexai=True, project=cloud.project, location=cloud.region, http_options=options)
    model, contents = request.model, _REPLACED
    if ":countTokens" in request.path:
        sdk.models.count_tokens(model=model, contents=contents)
    else:
        for _ in sdk.models.generate_content_stream(model=model, contents=contents):
            pass


def _below(address: str | None, path: str) -> str | None:
    """An address with a path, which it may have already."""
    return address if address is None or address.endswith(path) else address + path


def _entra_token(cloud: Cloud) -> str:
    """A token of Microsoft Entra, by whatever credentials this machine or its user has."""
    from importlib import import_module

    identity: Any = import_module("azure.identity")
    return identity.DefaultAzureCredential().get_token(_ENTRA_SCOPES[cloud.platform]).token
