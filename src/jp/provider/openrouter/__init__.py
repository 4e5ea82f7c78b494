"""OpenRouter: many vendors' models behind one Chat Completions API."""
