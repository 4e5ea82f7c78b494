"""The tools that come with jp and work on files."""
