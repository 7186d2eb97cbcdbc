"""Run a notebook file in a fresh kernel and write it back, in a process of its own: FILE."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

if __name__ == "__main__":
    file = Path(sys.argv[1])
    notebook = nbformat.read(file, as_version=4)
    resources = {"metadata": {"path": str(file.parent)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True, resources=resources).execute()
    nbformat.write(notebook, file)
