"""Join operators: their steps and orders."""
