"""Properties are tried on the same examples everywhere, and a slow machine is no failure."""

from hypothesis import settings

settings.register_profile("everywhere", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("everywhere")
