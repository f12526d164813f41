"""From proven patches to draft PRs: scopes, texts, and one state machine."""
