"""What mends an error of a server on the user's own machine, where more is known than of its kind. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from jp.provider.errors import ErrorKind


def hints_of(kind: str, provider: str, model: str) -> Mapping[ErrorKind, str]:
    """Hints by the kind of the error. `kind` is what the server called `provider` speaks, `model` what is asked."""
    match kind:
        case "ollama":
            setting = f"`providers.llm.{provider}.context_window`"
            return {
                "model_not_found": f"`ollama pull {model}` gets it, `ollama list` says which are there",
                "context_too_long": f"set {setting} higher, as far as the model and the memory go, or send less",
            }
        case "llamacpp":
            return {"context_too_long": "start the server with more room (`llama-server --ctx-size …`), or send less"}
        case "openai-compatible":
            return {
                "invalid_request": f"`providers.llm.{provider}` has settings for what a server does not take, such as "
                "`structured`; `jp query --dry-run --format json …` shows what is sent"
            }
        case _:
            return {}
