"""The client that is written by hand, and awaits. `_blocking` is made of it."""
