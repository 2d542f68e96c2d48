"""What a plan will cost, and which plan stays within two limits: pure functions (JTree).

A planner sees one immutable :class:`~penstock.planning.statistics.Statistics`, the join graph and
:class:`~penstock.planning.limits.Limits`. :mod:`~penstock.planning.problem` makes one problem of
them, :mod:`~penstock.planning.cost_model` prices a plan, and there is one module per planner.
"""
