"""The schemes `http` and `https`: pages of the web."""
