"""Run-time proof: a tree with and without a patch, run on a CPU and compared.

The half that runs here prepares, watches and judges; :mod:`vlmend.cli.proof.harness` is
the other half, which runs beside the tree's code in a process of its own.
"""
