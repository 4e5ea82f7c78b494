from __future__ import annotations

from jp.mcp.definitions import Hints, Listing, ServerTool


def test_hints_are_told_in_words_and_silence_is_silent() -> None:
    assert Hints().sentences == ()
    assert Hints(reads_only=True, destroys=False).sentences == ("changes nothing", "only adds")
    assert Hints(reads_only=False, destroys=True, repeatable=True, open_world=False).sentences == (
        "may change something",
        "may overwrite or delete",
        "does nothing more when it is called again",
        "stays within what it knows",
    )


def test_a_tool_is_found_by_its_name() -> None:
    tool = ServerTool(name="b", parameters={})
    listing = Listing(tools=(ServerTool(name="a", parameters={}), tool))

    assert listing.tool("b") is tool
    assert listing.tool("c") is None
