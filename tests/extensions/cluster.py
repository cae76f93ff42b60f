"""As much of a Kubernetes cluster as kubectl needs: its pods are processes of this machine.

No API server can be had from a package registry, so this answers in its place; kubectl is the real
one. What the server would judge (manifests, permissions) is not judged here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

CONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
current-context: c
"""
OUT, ERR, STATUS = b"\x01", b"\x02", b"\x03"
RESOURCE = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod"}
VERBS = ["create", "delete", "get", "list", "patch"]


class Cluster:
    """Its pods, by their names; ``asked`` is what kubectl has asked for."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []

    def app(self) -> Starlette:
        pods = "/api/v1/namespaces/default/pods"
        return Starlette(
            routes=[
                WebSocketRoute(f"{pods}/{{name}}/exec", self.enter),
                Route(pods, self.all, methods=["GET", "POST"]),
                Route(f"{pods}/{{name}}", self.one, methods=["GET", "DELETE"]),
                Route("/{path:path}", self.other, methods=["GET"]),
            ]
        )

    async def other(self, request: Request) -> JSONResponse:
        match request.url.path:
            case "/api":
                return JSONResponse({"kind": "APIVersions", "versions": ["v1"]})
            case "/apis":
                return JSONResponse({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
            case "/api/v1":
                resources = [{**RESOURCE, "verbs": VERBS}]
                listed = {"groupVersion": "v1", "resources": resources}
                return JSONResponse({"kind": "APIResourceList", **listed})
            case _:
                return missing(request.url.path)

    async def all(self, request: Request) -> JSONResponse:
        if request.method == "GET":
            self.asked.append("list")
            pods = [*self.pods.values()]
            return JSONResponse({"kind": "PodList", "apiVersion": "v1", "items": pods})
        pod: dict[str, Any] = await request.json()
        name = pod["metadata"]["name"]
        self.asked.append(f"create {name}")
        self.pods[name] = {**pod, "status": {"phase": "Running"}}
        return JSONResponse(self.pods[name], 201)

    async def one(self, request: Request) -> JSONResponse:
        name = request.path_params["name"]
        if name not in self.pods:
            return missing(name)
        if request.method == "DELETE":
            self.asked.append(f"delete {name}")
            return JSONResponse(self.pods.pop(name))
        return JSONResponse(self.pods[name])

    async def enter(self, websocket: WebSocket) -> None:
        """Run a program, with its output on channels as Kubernetes has them."""
        await websocket.accept(subprotocol="v5.channel.k8s.io")
        argv = websocket.query_params.getlist("command")
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )

        async def pass_on(channel: bytes, stream: asyncio.StreamReader | None) -> None:
            while stream is not None and (piece := await stream.read(65536)):
                with contextlib.suppress(Exception):  # kubectl is gone: the program goes on
                    await websocket.send_bytes(channel + piece)

        await asyncio.gather(pass_on(OUT, process.stdout), pass_on(ERR, process.stderr))
        code = await process.wait()
        status: dict[str, Any] = {"metadata": {}, "status": "Success"}
        if code:
            cause = {"reason": "ExitCode", "message": str(code)}
            told = f"command terminated with exit code {code}"
            details = {"causes": [cause]}
            status = {"status": "Failure", "reason": "NonZeroExitCode", "message": told}
            status |= {"metadata": {}, "details": details}
        with contextlib.suppress(Exception):
            await websocket.send_bytes(STATUS + json.dumps(status).encode())
            await websocket.close()


def missing(name: str) -> JSONResponse:
    told = f'pods "{name}" not found'
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {}}
    return JSONResponse({**status, "message": told, "reason": "NotFound", "code": 404}, 404)


@contextmanager
def running(config: Path) -> Iterator[Cluster]:
    """A cluster in a thread of its own; the file is for ``KUBECONFIG``."""
    cluster = Cluster()
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(cluster.app(), log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    config.write_text(CONFIG.format(port=listening.getsockname()[1]))
    yield cluster
    server.should_exit = True
    thread.join(10)
    listening.close()
