"""The symbolic validation: a kernel runs once, for all sizes."""
