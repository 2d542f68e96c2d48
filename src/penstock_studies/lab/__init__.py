"""How experiments are run and shown, whatever they measure.

An :class:`~penstock_studies.lab.experiment.Experiment` names the points to be measured and says
how their rows become a chart and a verdict. :mod:`~penstock_studies.lab.runner` measures what
the :mod:`~penstock_studies.lab.store` does not have yet, each point in a process of its own,
and :mod:`~penstock_studies.lab.report` writes the page.
"""
