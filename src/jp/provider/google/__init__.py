"""Gemini, over `generateContent`."""
