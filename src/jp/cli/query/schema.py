"""The schema of a query: what `--schema` says, else what a request that is asked again had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from jp.cli.query.arguments import QueryArguments
from jp.conversation.entries import ChatRequest

if TYPE_CHECKING:
    from jp.cli.structured.check import Checker


def read_wanted(arguments: QueryArguments) -> Checker | None:
    """What `--schema` says.

    Raises:
        ConfigurationError: its file is no schema.
        UsageError: its text is no schema.
    """
    if arguments.schema is None:
        return None
    from jp.cli.structured.option import read_schema

    return read_schema(arguments.schema)


def with_schema(request: ChatRequest, wanted: Checker | None) -> tuple[ChatRequest, Checker | None]:
    """`request` with the schema that is wanted, or with its own.

    Raises:
        InvalidSchemaError: its own cannot be used.
    """
    if wanted is not None:
        return replace(request, schema=wanted.schema), wanted
    if request.schema is None:
        return request, None
    from jp.cli.structured.check import Checker

    return request, Checker(request.schema)
