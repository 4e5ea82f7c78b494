"""One response from one model: ports, parts, transport, adapters."""
