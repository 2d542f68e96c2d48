"""JIT (Yang and Papadias, ICDE 2008) as published, and the experiments of its section VI.

:class:`~penstock.experiments.jit.literal.LiteralJit` is the paper's reactive algorithm, tuple at a
time; :mod:`~penstock.experiments.jit.section_vi` measures it and the engine in the paper's setting.
"""
