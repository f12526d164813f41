"""How findings came and went: over releases, and over the commits of a clone."""
