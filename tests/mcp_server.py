"""An MCP server of the tests' own: a script that speaks plain JSON-RPC on its standard streams and starts at once.

Each of its tools does what its name says. `MCP_TRACE` names a file to which it appends the methods that it hears;
`MCP_TOOLS` are the names of the tools that it lists, all without it; `MCP_START` makes it `exit`, `hang`, print
`noise`, `blanks` (lines of nothing) or `refuse` instead of starting. `MCP_ERA` makes it `strict`, so that it ends at
anything before `initialize`, as the Python SDK up to 1.8 does; or speak `both` the handshake and the version of 2026,
in which it cannot ask anything, as the current SDK does; or only that `new` one.
"""

from __future__ import annotations

import json
import os
import sys
import time

# It starts for many tests, in two thirds of the time that it would take with `typing` and `pathlib`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    Json: TypeAlias = dict[str, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel."""


def send(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def trace(line: str) -> None:
    if path := os.environ.get("MCP_TRACE"):
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - pathlib would take as long to import as all else here
            file.write(f"{line}\n")


def answers() -> Iterator[Json]:
    """What comes on the standard input, line by line."""
    for line in sys.stdin:
        message: Json = json.loads(line)
        trace(str(message.get("method", "answer")))
        yield message


INCOMING = answers()


def text(words: str, **more: object) -> Json:
    return {"content": [{"type": "text", "text": words}], **more}


def echo(arguments: Json, _: Json) -> Json:
    return text(str(arguments["text"]))


def fail(_: Json, __: Json) -> Json:
    return text("it did not work", isError=True)


def refuse(_: Json, __: Json) -> Json:
    raise ValueError("not today")


def die(_: Json, __: Json) -> Json:
    sys.stderr.write("the disk is on fire\n")
    sys.stderr.flush()
    os._exit(3)


def hang(_: Json, __: Json) -> Json:
    next(message for message in INCOMING if message.get("method") == "notifications/cancelled")
    return {}


def flood(_: Json, __: Json) -> Json:
    while True:
        sys.stdout.write("x" * 1_000_000)


def noise(_: Json, __: Json) -> Json:
    sys.stdout.write("installing…\n")
    return text("done")


def half(_: Json, __: Json) -> Json:
    return text("a cut \ud83d face")


def no_answer(_: Json, __: Json) -> Json:
    return {"content": "none of the kind"}


def picture(_: Json, __: Json) -> Json:
    return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}


def everything(_: Json, __: Json) -> Json:
    embedded = {"uri": "memo://embedded", "mimeType": "text/plain", "text": "embedded words"}
    return {
        "content": [
            {"type": "text", "text": "words"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "image", "data": "%%%", "mimeType": "image/png"},
            {"type": "resource", "resource": embedded, "annotations": {"audience": ["user"], "priority": 0.5}},
            {"type": "resource_link", "uri": "memo://note", "name": "note"},
            {"type": "resource_link", "uri": "memo://picture", "name": "a picture", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "memo://gone", "name": "gone"},
        ]
    }


def structured(_: Json, __: Json) -> Json:
    return {"content": [], "structuredContent": {"degrees": 21}}


def steps(_: Json, meta: Json) -> Json:
    for step in (1, 2):
        params = {"progressToken": meta["progressToken"], "progress": step, "total": 2, "message": f"step {step}"}
        send({"method": "notifications/progress", "params": params})
    return text("done")


FORM: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "in full"},
        "age": {"type": "integer"},
        "member": {"type": "boolean"},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "red"}, {"const": "b", "title": "blue"}]},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}},
    },
    "required": ["name", "colour"],
}


def asked(params: Json) -> Json:
    if is_modern():
        raise ValueError("this transport context has no back-channel")
    send({"id": "question", "method": "elicitation/create", "params": params})
    answer = next(message for message in INCOMING if message.get("id") == "question")
    return text(json.dumps(answer.get("result", answer.get("error")), sort_keys=True))


def ask(_: Json, __: Json) -> Json:
    return asked({"message": "Who are you?", "requestedSchema": FORM})


def ask_page(_: Json, __: Json) -> Json:
    page = {"mode": "url", "message": "Sign in", "url": "https://example.com/login", "elicitationId": "1"}
    return asked(page)


def crowd(_: Json, __: Json) -> Json:
    """Ask more at once than anybody answers."""
    for number in range(20_000):
        send({"id": f"crowd{number}", "method": "ping"})
    return text("done")


def blocks(_: Json, __: Json) -> Json:
    return {"content": [{"type": "text", "text": "x"}] * 30_000}


def values(_: Json, __: Json) -> Json:
    return {"content": [], "structuredContent": {"values": [[]] * 1_000_000}}


def log(_: Json, __: Json) -> Json:
    for number in range(5000):
        send({"method": "notifications/message", "params": {"level": "info", "data": f"{number} {'x' * 5000}"}})
    return text("done")


def ask_often(_: Json, meta: Json) -> Json:
    """Ask six questions at once, and tell of progress when two of them are answered."""
    params = {"message": "Who are you?", "requestedSchema": FORM}
    for number in range(6):
        send({"id": f"question {number}", "method": "elicitation/create", "params": params})
    answers = (message["result"]["action"] for message in INCOMING if str(message.get("id")).startswith("question"))
    first = [next(answers), next(answers)]
    send({"method": "notifications/progress", "params": {"progressToken": meta["progressToken"], "progress": 1}})
    return text(json.dumps([first, [next(answers) for _ in range(4)]]))


def sample(_: Json, __: Json) -> Json:
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
    send({"id": "sample", "method": "sampling/createMessage", "params": params})
    answer = next(message for message in INCOMING if message.get("id") == "sample")
    return text(json.dumps(answer.get("error")))


def environment(_: Json, __: Json) -> Json:
    from pathlib import Path

    return text(json.dumps({"variables": dict(os.environ), "directory": str(Path.cwd())}))


def change(_: Json, __: Json) -> Json:
    LISTED.append("fail")
    send({"method": "notifications/tools/list_changed"})
    return text("changed")


def slow_to_end(arguments: Json, _: Json) -> Json:
    """Outlive the session, and leave a child behind; both hold `path` open."""
    import signal
    import subprocess

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    held = os.open(str(arguments["path"]), os.O_WRONLY)
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], pass_fds=[held])
    send({"id": CURRENT[-1], "result": text("started")})
    time.sleep(600)
    return {}


TOOLS: dict[str, Callable[[Json, Json], Json]] = {
    tool.__name__: tool
    for tool in (
        echo, fail, refuse, die, hang, flood, noise, half, no_answer, picture, everything, structured, steps, ask,
        ask_page, ask_often, crowd, blocks, values, log, sample, environment, change, slow_to_end,
    )
}  # fmt: skip
LISTED = os.environ.get("MCP_TOOLS", ",".join(TOOLS)).split(",")
CURRENT: list[object] = []


def definition(name: str) -> Json:
    properties = {"text": {"type": "string"}} if name == "echo" else {}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "name": name,
        "description": f"{name} it",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


def read(uri: object) -> Json:
    contents: dict[str, list[Json]] = {
        "memo://note": [{"mimeType": "text/plain", "text": "a note"}],
        "memo://picture": [{"mimeType": "image/png", "blob": PNG}],
        "memo://archive": [{"mimeType": "application/zip", "blob": "UEsDBAAAAAA="}],
        "memo://broken": [{"blob": "%%%"}],
        "memo://packed": [{"mimeType": "text/plain", "blob": "d29y\nZHM="}],
        "memo://latin": [{"mimeType": "text/plain", "blob": "6Q=="}],
        "memo://all": [{"text": "one"}, {"text": "two"}],
    }
    if uri not in contents:
        raise ValueError(f"no resource {uri}")
    return {"contents": [{"uri": uri, **item} for item in contents[str(uri)]]}


ERA = os.environ.get("MCP_ERA")
SPOKEN: list[str] = []
"""What the session began with."""


class UnsupportedVersionError(Exception):
    """The handshake is not known."""


def begin(method: str) -> None:
    if not SPOKEN:
        SPOKEN.append(method)
    if ERA == "strict" and SPOKEN[0] != "initialize":
        sys.exit("Received request before initialization was complete")
    if ERA == "new" and method == "initialize":
        raise UnsupportedVersionError


def is_modern() -> bool:
    return ERA in {"both", "new"} and SPOKEN != ["initialize"]


def respond(method: str, params: Json) -> Json:
    match method:
        case "server/discover" if is_modern():
            capabilities: Json = {"tools": {}, "resources": {}}
            return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
        case "initialize" if os.environ.get("MCP_START") == "refuse":
            raise ValueError("no licence")
        case "initialize":
            capabilities = {"tools": {"listChanged": True}, "resources": {}}
            server = {"name": "tests", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server}
        case "tools/list":
            return {"tools": [definition(name) for name in LISTED]}
        case "tools/call":
            return TOOLS[params["name"]](params.get("arguments", {}), params.get("_meta", {}))
        case "resources/list":
            return {"resources": [{"uri": "memo://note", "name": "note"}, {"uri": "memo://picture", "name": "picture"}]}
        case "resources/read":
            return read(params["uri"])
        case _:
            raise LookupError(method)


def start() -> None:
    match os.environ.get("MCP_START"):
        case "exit":
            sys.exit("there is no configuration")
        case "hang":
            time.sleep(600)
        case "noise":
            while True:
                sys.stdout.write(f"{'what is this? ' * 100}\n")
        case "blanks":
            while True:
                sys.stdout.write("\n" * 1000)
        case str(path) if path.startswith("/"):
            with open(path, "rb") as pipe:  # noqa: PTH123 - the server starts without pathlib
                pipe.read()
        case _:
            pass


def handle(message: Json) -> None:
    CURRENT.append(message["id"])
    try:
        begin(message["method"])
        result = respond(message["method"], message.get("params", {}))
        if is_modern():
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public", **result}
        send({"id": message["id"], "result": result})
    except UnsupportedVersionError:
        data = {"supported": ["2026-07-28"], "requested": message["params"]["protocolVersion"]}
        send({"id": message["id"], "error": {"code": -32022, "message": "Unsupported version", "data": data}})
    except LookupError:
        send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    except ValueError as error:
        send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})


def main() -> None:
    start()
    for message in INCOMING:
        if "id" in message:
            handle(message)


if __name__ == "__main__":
    main()
