"""What grows with what: windows, streams, cells, and the cluster that follows from them.

Three things are measured: what a tuple costs an engine as windows grow
(:mod:`~penstock_studies.scale.window_point`) and as streams are added
(:mod:`~penstock_studies.scale.streams_point`), and where the tuples of a query go, by the code
that sends them on Spark (:mod:`~penstock_studies.scale.cells_point`).
:mod:`~penstock_studies.scale.cluster` puts these numbers together: what many machines would
carry, which nobody has measured.
"""
