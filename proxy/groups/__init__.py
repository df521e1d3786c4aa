"""The member groups of a tenant: a client of their administrative service, and groups written down as a file."""
