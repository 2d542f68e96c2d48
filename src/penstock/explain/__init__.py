"""What people read about a plan: one rendered model, many renderers."""
