"""Programs that the kernel confines."""
