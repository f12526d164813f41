"""GitHub: who a fork is, what may be opened where, and what is there already."""
