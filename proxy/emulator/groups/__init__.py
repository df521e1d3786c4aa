"""The member-group service's double: another host, another key, its own rules about trees, members and quotas."""
