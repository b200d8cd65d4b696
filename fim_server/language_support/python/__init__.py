"""Support for Python: names, scopes, imports and notebook cells."""
