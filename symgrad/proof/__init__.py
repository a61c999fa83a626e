"""symgrad."""
