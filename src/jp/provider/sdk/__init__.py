"""Requests to the clouds whose authentication the vendors' SDKs own."""
