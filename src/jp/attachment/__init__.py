"""From URIs to resources, one module a scheme."""
