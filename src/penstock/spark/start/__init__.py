"""How Spark is started on one machine: Java, Python workers, what the user has said before."""
