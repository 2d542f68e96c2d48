"""``penstock doctor``: what this machine lacks, and how to mend it."""
