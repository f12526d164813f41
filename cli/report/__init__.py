"""How results look: text, JSON, Markdown and diffs, each in a module of its own."""
