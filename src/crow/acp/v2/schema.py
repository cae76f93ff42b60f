"""Parameters of a client's messages in version 2 of the protocol.

Written by ``tests/acp/write_schema.py`` from the official library; `crow.acp.params` reads them.
"""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from crow.acp.params import LENIENT, SOUND, Other


class LoginAuthRequest(TypedDict):
    methodId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class LogoutAuthRequest(TypedDict):
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class AcpMcpServer(TypedDict):
    name: str
    serverId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["acp"]]


class EnvVariable(TypedDict):
    name: str
    value: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class HttpHeader(TypedDict):
    name: str
    value: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class HttpMcpServer(TypedDict):
    name: str
    url: str
    headers: NotRequired[list[HttpHeader]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["http"]]


OtherMcpServer: TypeAlias = Annotated[
    dict[str, Any],
    Other(
        "type",
        (
            "acp",
            "http",
            "stdio",
        ),
    ),
]


class StdioMcpServer(TypedDict):
    name: str
    command: str
    args: NotRequired[list[str]]
    env: NotRequired[list[EnvVariable]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["stdio"]]


class NewSessionRequest(TypedDict):
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | AcpMcpServer | StdioMcpServer | OtherMcpServer], SOUND]
    ]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


OtherReplayFrom: TypeAlias = Annotated[dict[str, Any], Other("type", ("start",))]


class ReplayFromStartVariant(TypedDict):
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["start"]]


class ResumeSessionRequest(TypedDict):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | AcpMcpServer | StdioMcpServer | OtherMcpServer], SOUND]
    ]
    replayFrom: NotRequired[Annotated[ReplayFromStartVariant | OtherReplayFrom, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class ForkSessionRequest(TypedDict):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | AcpMcpServer | StdioMcpServer | OtherMcpServer], SOUND]
    ]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class ListSessionsRequest(TypedDict):
    cwd: NotRequired[str]
    cursor: NotRequired[str]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class CloseSessionRequest(TypedDict):
    sessionId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class DeleteSessionRequest(TypedDict):
    sessionId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class Annotations(TypedDict):
    audience: NotRequired[Annotated[list[str], SOUND]]
    lastModified: NotRequired[Annotated[str, LENIENT]]
    priority: NotRequired[Annotated[float, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class AudioContentBlock(TypedDict):
    data: str
    mimeType: str
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["audio"]]


class BlobResourceContents(TypedDict):
    blob: str
    uri: str
    mimeType: NotRequired[Annotated[str, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class TextResourceContents(TypedDict):
    text: str
    uri: str
    mimeType: NotRequired[Annotated[str, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class EmbeddedResourceContentBlock(TypedDict):
    resource: TextResourceContents | BlobResourceContents
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["resource"]]


class Icon(TypedDict):
    src: str
    mimeType: NotRequired[Annotated[str, LENIENT]]
    sizes: NotRequired[Annotated[list[str], SOUND]]
    theme: NotRequired[Annotated[str, LENIENT]]


class ImageContentBlock(TypedDict):
    data: str
    mimeType: str
    uri: NotRequired[Annotated[str, LENIENT]]
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["image"]]


OtherContentBlock: TypeAlias = Annotated[
    dict[str, Any],
    Other(
        "type",
        (
            "audio",
            "image",
            "resource",
            "resource_link",
            "text",
        ),
    ),
]


class ResourceContentBlock(TypedDict):
    name: str
    uri: str
    title: NotRequired[Annotated[str, LENIENT]]
    description: NotRequired[Annotated[str, LENIENT]]
    icons: NotRequired[Annotated[list[Icon], SOUND]]
    mimeType: NotRequired[Annotated[str, LENIENT]]
    size: NotRequired[Annotated[int, LENIENT]]
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["resource_link"]]


class TextContentBlock(TypedDict):
    text: str
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["text"]]


class PromptRequest(TypedDict):
    sessionId: str
    prompt: list[
        TextContentBlock
        | ImageContentBlock
        | AudioContentBlock
        | ResourceContentBlock
        | EmbeddedResourceContentBlock
        | OtherContentBlock
    ]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class CancelSessionNotification(TypedDict):
    sessionId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
