"""The GitHub Action: what ``action.yml`` runs, with ``python -m vlmend.cli.action``.

Everything that a workflow says arrives in variables, and everything that a job is told
leaves through the runner's files and commands; nothing passes through a shell.
"""
