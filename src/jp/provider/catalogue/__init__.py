"""Catalogues of models: fetched from providers, cached on disk, joined with the configuration and jp's own tables."""
