"""Twenty workloads on which ``plan="auto"`` is compared with the best plan that somebody gives."""
