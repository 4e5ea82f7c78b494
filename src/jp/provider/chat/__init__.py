"""The Chat Completions wire format, shared by every server that speaks it.

An adapter describes its server in a `Server` (name, model table, `Quirks`) and passes it to a `ChatAdapter`, with a
pure function from a thread to what only this server takes (`Asked`: fields of the body such as those of reasoning,
headers, notes about what is not sent). For anything else (another tool choice, for example) it changes the thread and
calls `request.render`, `request.sections` and `response.ChatDecoder.of` itself. `jp.provider.chat.request` is the
smallest example.
"""
