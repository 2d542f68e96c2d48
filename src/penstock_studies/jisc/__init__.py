"""The experiments of JISC (Aly, Aref and others, EDBT 2014): section 6, and the analysis of 5.2.

:mod:`~penstock_studies.jisc.figures` has what is measured for Figures 7 to 12;
:mod:`~penstock_studies.jisc.propositions` has Propositions 1 to 3.
"""
