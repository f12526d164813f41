"""The half of a proof that runs beside the tree's code, in a Python of its own.

It is started with the tree and this package on its path and nothing else of vlmend, so
it imports only the standard library at its top; torch, Transformers and vLLM are found
by name in the environment that was made for the tree.
"""
