"""The `mcp+SERVER+URI` scheme: resources of MCP servers."""
