"""einsum."""
