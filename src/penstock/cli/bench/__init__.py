"""``penstock bench``: how fast and how large, against what can be done offline."""
