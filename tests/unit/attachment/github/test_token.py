from __future__ import annotations

from pathlib import Path

import anyio

from jp.attachment.github_repository import find_token

GH = """#!/bin/sh
if [ -n "$ANTHROPIC_API_KEY$SSH_AUTH_SOCK" ]; then echo leaked; else echo "token-of-$GH_CONFIG_DIR"; fi
"""


def test_gh_gets_its_own_settings_and_no_key_of_others(tmp_path: Path) -> None:
    program = tmp_path / "gh"
    program.write_text(GH, encoding="utf-8")
    program.chmod(0o755)
    environment = {"PATH": str(tmp_path), "ANTHROPIC_API_KEY": "sk", "SSH_AUTH_SOCK": "/s", "GH_CONFIG_DIR": "here"}

    token = anyio.run(find_token, environment, "github.com")

    assert token is not None
    assert token.value == "token-of-here"
