"""The figures and tables of the papers: what each claims, how it is drawn, and the verdict."""
