"""A C++ rendering of the host program, for reading; what runs is the loadable form beside it."""
