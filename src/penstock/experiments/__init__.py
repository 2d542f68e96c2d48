"""The experiments of the papers, one parameterised module for each; ``penstock experiment``."""
