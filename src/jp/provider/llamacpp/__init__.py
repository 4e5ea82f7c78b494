"""A server of llama.cpp: Chat Completions with what only it knows."""
