"""Images that a model can look at."""

from __future__ import annotations

import base64

from crow.core.messages import ImagePart, TextPart
from crow.core.tools import ToolResult
from crow.tools.errors import ToolError

LARGEST_IMAGE = 5 * 1024 * 1024


def recognise(start: bytes) -> str | None:
    """The media type that the first 16 bytes of a file tell; None where it is no such image."""
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return None


def demand_small_image(path: str, size: int) -> None:
    """Raise `ToolError` for an image of more than 5 MiB."""
    if size > LARGEST_IMAGE:
        raise ToolError(f"{path} has {size} bytes; images up to {LARGEST_IMAGE} can be looked at.")


def image_result(path: str, media_type: str, data: bytes) -> ToolResult:
    """The image as a part of a message. Raises `ToolError` above 5 MiB."""
    demand_small_image(path, len(data))
    url = f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
    image: ImagePart = {"type": "image_url", "image_url": {"url": url}}
    caption: TextPart = {"type": "text", "text": f"{path} ({media_type}, {len(data)} bytes)"}
    file = {"filePath": path, "type": media_type, "originalSize": len(data)}
    return ToolResult([caption, image], data={"type": "image", "file": file})
