"""From a stream to the view that a model gets. Pure."""
