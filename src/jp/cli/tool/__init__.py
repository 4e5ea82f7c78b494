"""`jp tool`: the tools that a model may call, looked at and run by hand."""
