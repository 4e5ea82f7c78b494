"""Providers of models: ports, adapters for vendors, transport, keys, and tables of models."""
