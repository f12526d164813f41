"""Every text that a person reads: Jinja2 templates, loaded by the command line."""
