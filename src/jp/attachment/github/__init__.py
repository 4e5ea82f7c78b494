"""The `gh` scheme: pull requests and issues."""
