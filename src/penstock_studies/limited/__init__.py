"""Plans in processes that are really limited: Figures 7 and 8 of JTree, and random graphs."""
