"""Counts the tokens of texts, a list in JSON on standard input, with two real vocabularies.

Runs in the environment of `make real`: SmolLM2's is that of the model there, o200k the one of
OpenAI's models.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path

import bpe_openai  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "real"))
from serve import serve  # type: ignore[import-not-found]


def main() -> None:
    texts: list[str] = json.load(sys.stdin)
    server = serve(0, 512, 1)
    url = f"{server.listening_address}/tokenize"

    def smollm2(text: str) -> int:
        body = json.dumps({"content": text}).encode()
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return len(json.load(response)["tokens"])

    encode = bpe_openai.get_encoding("o200k_base").encode
    print(json.dumps([[smollm2(text), len(encode(text))] for text in texts]), flush=True)
    os._exit(0)  # the server would be waited for


if __name__ == "__main__":
    main()
