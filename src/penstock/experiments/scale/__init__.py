"""What grows with what: windows, streams, cells, and the cluster that follows from them.

Three things are measured: what a tuple costs an engine as windows grow
(:mod:`~penstock.experiments.scale.window_point`) and as streams are added
(:mod:`~penstock.experiments.scale.streams_point`), and where the tuples of a query go, by the code
that sends them on Spark (:mod:`~penstock.experiments.scale.cells_point`).
:mod:`~penstock.experiments.scale.cluster` puts these numbers together: what many machines would
carry, which nobody has measured.
"""
