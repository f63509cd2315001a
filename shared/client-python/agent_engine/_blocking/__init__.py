# Made of ../_async/__init__.py by scripts/blocking-client.py: change that one.
"""The client that is written by hand, and awaits. `_blocking` is made of it."""
