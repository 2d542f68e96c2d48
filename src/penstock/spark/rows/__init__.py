"""Rows and their time on the way from Spark into cells and back."""
