"""The Python functions behind the verbs of the command line."""
