"""The Chat Completions wire format, once, for every server that speaks it: how to build an adapter on it.

An adapter says what is peculiar to its server in a `Server` (its name, whose model table, its `Quirks`) and gives it to
a `ChatAdapter`, with a pure function from a thread to what only this server is asked (`Asked`: fields of the body such
as those of reasoning, headers, sentences about what is left out). What does not fit there (another choice of tool, say)
it does to the thread before it calls `request.render`, `request.sections` and `response.ChatDecoder.of` itself.
`jp.provider.compatible.request` is the smallest example.
"""
