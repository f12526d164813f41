"""Turns edits into text: exact places found with LibCST, everything else untouched."""
