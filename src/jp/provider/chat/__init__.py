"""The Chat Completions wire format, once, for every server that speaks it: how to build an adapter on it.

An adapter says what is peculiar to its server in a `Server` (its name, its model table, its `Quirks`), and calls
`request.render(thread, server, …)`, `request.sections(request)` and `response.ChatDecoder.of(request, server)`. What
only it has to say (how reasoning is asked for) it hands to `render` as `extra`, fields of the body, with the sentences
about what could not be said as `left_out`. `jp.provider.compatible` is the smallest example.
"""
