"""The process in which jp holds a value against a schema with patterns."""

from __future__ import annotations

import os

from jp.app.structured.searching import main

if __name__ == "__main__":
    main()
    os._exit(0)
