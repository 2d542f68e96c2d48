"""Too little CPU: budgets, costs of probes, freshness, estimates of loss, and the control."""
