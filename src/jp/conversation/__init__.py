"""The domain: entries, streams, turns, resources, threads. Data and pure functions."""
