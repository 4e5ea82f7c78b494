"""One server for all tests; without the environment that has it, they are skipped."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from foreign_server import PYTHON, ForeignServer, serving, write_model


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not PYTHON.exists():
        pytest.skip("there is no server in .venv-foreign: `make test-foreign` installs one")
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path)
    return path


@pytest.fixture(scope="session")
def server(model_file: Path) -> Generator[ForeignServer]:
    with serving(model_file, "--model_alias", "tiny") as started:
        yield started
