"""Graph nodes and polynomials as text."""
