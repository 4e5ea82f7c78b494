"""What providers say of their models: asked, read, kept, and joined with what else is known of them."""
