"""JIT (Yang and Papadias, ICDE 2008) as published, and the experiments of its section VI.

:class:`~penstock_studies.jit.literal.LiteralJit` is the paper's reactive algorithm, tuple at a
time; :mod:`~penstock_studies.jit.section_vi` measures it and the engine in the paper's setting.
"""
