"""The embedded provider that plays a scenario file."""
