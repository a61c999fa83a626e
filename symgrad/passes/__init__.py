"""Graph -> graph, and graph -> numbers."""
