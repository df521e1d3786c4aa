"""The command line: one small file per command, none of them loaded before it is called."""
