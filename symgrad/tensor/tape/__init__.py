"""The graph that backward walks: its nodes, the engine, gradients."""
