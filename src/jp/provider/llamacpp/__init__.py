"""llama.cpp's server, which speaks Chat Completions."""
