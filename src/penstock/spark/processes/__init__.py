"""Programs that are processes of their own: started by name, with everything loaded."""
