"""Tools that MCP servers have."""
