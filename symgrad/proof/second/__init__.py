"""The derivative of a backward, as PyTorch records it."""
