"""Settings as values: model, layers, origins."""
