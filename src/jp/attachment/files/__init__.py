"""The `file` scheme: files, directories and globs."""
