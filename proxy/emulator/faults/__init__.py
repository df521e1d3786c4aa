"""Everything that can go wrong, by name: `table.py` is the list, its neighbours say how each row is done."""
