"""References in a schema: they have to end in the schema itself, and lead somewhere. Nothing is ever fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from jp.conversation.entries import JsonObject
from jp.conversation.json_schema import IN_PLACE, Place, pointer, schemas_in

if TYPE_CHECKING:
    from referencing.jsonschema import SchemaResource

_TOP: Place = tuple[str, ...]()
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class References:
    """Follows the references of one schema."""

    def __init__(self, schema: JsonObject, *, dialect: str) -> None:
        self._schema = schema
        self._dialect = dialect
        self._places: dict[int, Place] = {}
        # Which schemas are about the same value as a schema is, by identity.
        self._same: dict[int, list[int]] = {}

    def problem(self) -> str:
        """What is wrong with a reference and where, empty where all are well."""
        from referencing.exceptions import Unresolvable
        from referencing.jsonschema import EMPTY_REGISTRY

        resolver = EMPTY_REGISTRY.resolver_with_root(self._resource(self._schema))
        waiting = [(_TOP, self._schema, resolver)]
        while waiting:
            place, schema, resolver = waiting.pop()
            if not self._enter(schema, place):
                continue
            for keyword in _references_of(schema):
                where = (*place, keyword)
                try:
                    found = resolver.lookup(schema[keyword])
                except (Unresolvable, ValueError):
                    return f"{schema[keyword]!r} at {pointer(where)} is not in it"
                target = cast("Any", found.contents)
                if isinstance(target, dict):
                    self._same[id(schema)].append(id(cast("JsonObject", target)))
                    waiting.append((where, cast("JsonObject", target), found.resolver))
            for step, inner in schemas_in(schema):
                waiting.append(((*place, *step), inner, resolver.in_subresource(self._resource(inner))))
        return self._circle()

    def _resource(self, schema: JsonObject) -> SchemaResource:
        from referencing.jsonschema import specification_with

        return specification_with(self._dialect).create_resource(schema)

    def _enter(self, schema: JsonObject, place: Place) -> bool:
        """Whether `schema` was not seen before."""
        if id(schema) in self._same:
            return False
        self._places[id(schema)] = place
        self._same[id(schema)] = [id(inner) for step, inner in schemas_in(schema) if step[0] in IN_PLACE]
        return True

    def _circle(self) -> str:
        """A schema that comes back to itself while it is about the same value would be followed for ever."""
        done: set[int] = set()
        for start in self._same:
            path: list[int] = []
            waiting = [start]
            while waiting:
                current = waiting.pop()
                if current < 0:
                    done.add(path.pop())
                elif current in path:
                    return f"{pointer(self._places[current]) or 'its top'} refers to itself without end"
                elif current not in done:
                    path.append(current)
                    waiting += [-1, *self._same[current]]
        return ""


def _references_of(schema: JsonObject) -> Iterator[str]:
    return (keyword for keyword in _REFERENCES if isinstance(schema.get(keyword), str))
