"""The independent oracle: values, difference quotients and counterexamples at sampled points."""
