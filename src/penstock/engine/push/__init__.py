"""One push: how rows come in."""
