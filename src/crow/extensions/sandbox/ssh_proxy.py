"""A ProxyCommand of ssh's: relays its input and output through the proxy to HOST PORT.

A program of its own that runs inside, without Crow: ``python ssh_proxy.py PROXY HOST PORT``.
"""

import os
import socket
import sys
import threading


def main(proxy: str, host: str, port: str) -> None:
    """Hand on what comes in either direction, until the other side has ended."""
    there = socket.create_connection(("127.0.0.1", int(proxy)))
    there.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
    said = b""
    while not said.endswith(b"\r\n\r\n") and (piece := there.recv(1)):
        said += piece
    if b" 200 " not in said.partition(b"\r\n")[0]:
        line = said.decode("latin-1").partition("\r\n")[0]
        sys.exit(f"{host}: {line or 'no answer'}")
    threading.Thread(target=send, args=[there], daemon=True).start()
    while piece := there.recv(65536):
        while piece:
            piece = piece[os.write(1, piece) :]


def send(there: socket.socket) -> None:
    """Hand on the input, to its end."""
    while piece := os.read(0, 65536):
        there.sendall(piece)
    there.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(*sys.argv[1:])
