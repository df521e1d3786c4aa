"""What people write down, as checked values: settings of a process and policies for its callers."""
