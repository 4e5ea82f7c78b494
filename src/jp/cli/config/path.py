"""`jp config path`."""

from __future__ import annotations

from jp.cli.options import GlobalOptions


def path(options: GlobalOptions) -> None:
    """Print which configuration files are read here, least specific first, and which of them exist.

    Examples:
        jp config path
    """
    from jp.cli.output import print_result
    from jp.cli.places import open_workspace
    from jp.cli.settings import config_places
    from jp.config.places import candidates

    found = list(candidates(config_places(open_workspace(options))))
    lines = [f"{item.kind:<15}{item.path}{'' if item.path.exists() else '  (not there)'}" for item in found]
    value = [{"kind": item.kind, "path": str(item.path), "exists": item.path.exists()} for item in found]
    print_result(options, text="\n".join(lines), value={"files": value})
