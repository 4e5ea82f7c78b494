"""Which conversation is meant: ids, `.`, `prev`, `last`, or the text of a title."""

from __future__ import annotations

from collections.abc import Sequence

from jp.cli.places import AnyWorkspace
from jp.conversation.ids import ConversationId
from jp.errors import UsageError
from jp.workspace.listing import ConversationInfo
from jp.workspace.session import Session

_PREFIX = "jp-c"
_LISTED = 10
_NONE_ACTIVE = "no conversation is active in this terminal"
TARGET_HELP = "An id or the start of one, '.' (active here), 'prev', 'last' (used last), or words of a title."


def choose(target: str, workspace: AnyWorkspace, session: Session) -> ConversationInfo:
    """The one conversation that `target` means.

    Raises:
        UsageError: it means none, or several.
    """
    match target:
        case "." | "prev":
            return _of_session(target, workspace, session)
        case "last":
            return _last(workspace.conversations())
        case "":
            raise UsageError("an empty text names no conversation", hint=f"{TARGET_HELP}")
        case _:
            return _named(target, workspace.conversations())


def title_of(info: ConversationInfo) -> str:
    """What a person calls a conversation: its title, else the words of its directory's name. Fit to be shown."""
    from jp.render.sanitise import one_line

    words = info.directory.name.partition("-")[2].replace("-", " ")
    return one_line(info.metadata.title or words or "untitled")


def _of_session(target: str, workspace: AnyWorkspace, session: Session) -> ConversationInfo:
    found = session.active() if target == "." else session.previous()
    if found is None:
        what = _NONE_ACTIVE if target == "." else "no other conversation was active in this terminal"
        raise UsageError(what, hint="name one: `jp conversation ls` lists them, `jp conversation use ID` activates one")
    return workspace.get(found)


def _last(conversations: Sequence[ConversationInfo]) -> ConversationInfo:
    if not conversations:
        raise UsageError("there are no conversations here yet", hint='start one with `jp query --new "…"`')
    return max(conversations, key=lambda info: (info.last_activity, info.id.deciseconds))


def _named(target: str, conversations: Sequence[ConversationInfo]) -> ConversationInfo:
    digits = target.removeprefix(_PREFIX)
    if digits.isascii() and digits.isdecimal():
        found = [info for info in conversations if info.id.digits.startswith(digits)]
        exact = [info for info in found if info.id.digits == digits]
        return _only(target, exact or found)
    if target.startswith(_PREFIX):
        ConversationId.parse(target)
    wanted = target.casefold()
    titled = [info for info in conversations if wanted in title_of(info).casefold()]
    exact = [info for info in titled if title_of(info).casefold() == wanted]
    return _only(target, exact or titled)


def _only(target: str, found: Sequence[ConversationInfo]) -> ConversationInfo:
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"no conversation matches {target!r}", hint="list them with `jp conversation ls`")
    newest = sorted(found, key=lambda info: info.id.deciseconds, reverse=True)
    names = ", ".join(f"{info.id} ({title_of(info)})" for info in newest[:_LISTED])
    more = f", and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    raise UsageError(f"{len(found)} conversations match {target!r}: {names}{more}", hint="use one of these ids")
