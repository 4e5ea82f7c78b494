"""A server that is not ours: llama-cpp-python's, from an environment of its own, with a model that was just written."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from re import compile as pattern

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / ".venv-foreign" / "bin" / "python"
"""What `make test-foreign` installs."""

WINDOW = 4096
"""How many tokens the server holds, prompt and answer together."""

TIMEOUT_SECS = 120

_WRITER = Path(__file__).parent / "foreign" / "tiny_model.py"
_LISTENS = pattern(rb"Uvicorn running on (http://[\d.:]+)")


def write_model(path: Path) -> None:
    """Write the tiny model to `path`."""
    subprocess.run([PYTHON, _WRITER, path], check=True, timeout=TIMEOUT_SECS)


class ForeignServer:
    """A process that serves a model, on a port that it chose itself. `log` is what it has said so far."""

    def __init__(self, model: Path, *options: str) -> None:
        """Start it and wait until it listens."""
        arguments = ("--model", model, "--host", "127.0.0.1", "--port", "0", "--n_ctx", str(WINDOW), *options)
        self._process = subprocess.Popen(
            [PYTHON, "-u", "-m", "llama_cpp.server", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.log: list[bytes] = []
        self._root = b""
        self._listens = threading.Event()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        if not self._listens.wait(TIMEOUT_SECS) or not self._root:
            self.stop()
            raise AssertionError(b"".join(self.log).decode(errors="replace"))

    @property
    def url(self) -> str:
        """The address, with the version."""
        return f"{self._root.decode()}/v1"

    def stop(self) -> None:
        """End it, and wait until it has."""
        self._process.kill()
        self._process.wait(TIMEOUT_SECS)
        self._reading.join(TIMEOUT_SECS)

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream:
            for line in stream:
                self.log.append(line)
                if found := _LISTENS.search(line):
                    self._root = found[1]
                    self._listens.set()
        self._listens.set()


@contextmanager
def serving(model: Path, *options: str) -> Generator[ForeignServer]:
    """A server for as long as the context lasts."""
    server = ForeignServer(model, *options)
    try:
        yield server
    finally:
        server.stop()
