"""Functions that the model may call."""
