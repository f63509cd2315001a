"""The asynchronous client, which is written by hand. `_blocking` is generated from it."""
