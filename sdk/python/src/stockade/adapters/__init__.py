"""Doors of other packages: each module needs the package that its name has, and nothing else does."""
