"""The experiments of the papers and benchmarks of other engines: for a clone, not for users.

``penstock experiment`` runs the experiments, one parameterised module for each; ``penstock bench
peers`` the same joins on other engines. Nothing of :mod:`penstock` needs this package.
"""
