# Generated from ../_async/__init__.py by scripts/blocking-client.py: edit that file instead.
"""The asynchronous client, which is written by hand. `_blocking` is generated from it."""
