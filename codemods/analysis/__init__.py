"""What a tree says: files become facts, and facts become models."""
