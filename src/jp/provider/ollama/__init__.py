"""Ollama, over its own chat API."""
