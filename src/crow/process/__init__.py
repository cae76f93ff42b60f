"""Child processes: started in sessions of their own, ended with all that they have started."""
