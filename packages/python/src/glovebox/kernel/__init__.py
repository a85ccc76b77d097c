"""Jupyter: the kernel `glovebox-python` (python -m glovebox.kernel install) and the cell magic `%%sandbox`."""
