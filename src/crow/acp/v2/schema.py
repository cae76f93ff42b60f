"""Parameters of a client's messages in version 2 of the protocol.

Written by ``tests/acp/write_schema.py`` from the official library; `crow.acp.params` reads them.
"""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from crow.acp.params import LENIENT, SOUND, Extensible, Other


class LoginAuthRequest(Extensible):
    methodId: str


class LogoutAuthRequest(Extensible):
    pass


class AcpMcpServer(Extensible):
    name: str
    serverId: str
    type: NotRequired[Literal["acp"]]


class EnvVariable(Extensible):
    name: str
    value: str


class HttpHeader(Extensible):
    name: str
    value: str


class HttpMcpServer(Extensible):
    name: str
    url: str
    headers: NotRequired[list[HttpHeader]]
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


class StdioMcpServer(Extensible):
    name: str
    command: str
    args: NotRequired[list[str]]
    env: NotRequired[list[EnvVariable]]
    type: NotRequired[Literal["stdio"]]


class NewSessionRequest(Extensible):
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | AcpMcpServer | StdioMcpServer | OtherMcpServer], SOUND]
    ]


OtherReplayFrom: TypeAlias = Annotated[dict[str, Any], Other("type", ("start",))]


class ReplayFromStartVariant(Extensible):
    type: NotRequired[Literal["start"]]


class ResumeSessionRequest(Extensible):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | AcpMcpServer | StdioMcpServer | OtherMcpServer], SOUND]
    ]
    replayFrom: NotRequired[Annotated[ReplayFromStartVariant | OtherReplayFrom, LENIENT]]


class ForkSessionRequest(Extensible):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | AcpMcpServer | StdioMcpServer | OtherMcpServer], SOUND]
    ]


class ListSessionsRequest(Extensible):
    cwd: NotRequired[str]
    cursor: NotRequired[str]


class CloseSessionRequest(Extensible):
    sessionId: str


class DeleteSessionRequest(Extensible):
    sessionId: str


class Annotations(Extensible):
    audience: NotRequired[Annotated[list[str], SOUND]]
    lastModified: NotRequired[Annotated[str, LENIENT]]
    priority: NotRequired[Annotated[float, LENIENT]]


class AudioContentBlock(Extensible):
    data: str
    mimeType: str
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    type: NotRequired[Literal["audio"]]


class BlobResourceContents(Extensible):
    blob: str
    uri: str
    mimeType: NotRequired[Annotated[str, LENIENT]]


class TextResourceContents(Extensible):
    text: str
    uri: str
    mimeType: NotRequired[Annotated[str, LENIENT]]


class EmbeddedResourceContentBlock(Extensible):
    resource: TextResourceContents | BlobResourceContents
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    type: NotRequired[Literal["resource"]]


class Icon(TypedDict):
    src: str
    mimeType: NotRequired[Annotated[str, LENIENT]]
    sizes: NotRequired[Annotated[list[str], SOUND]]
    theme: NotRequired[Annotated[str, LENIENT]]


class ImageContentBlock(Extensible):
    data: str
    mimeType: str
    uri: NotRequired[Annotated[str, LENIENT]]
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
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


class ResourceContentBlock(Extensible):
    name: str
    uri: str
    title: NotRequired[Annotated[str, LENIENT]]
    description: NotRequired[Annotated[str, LENIENT]]
    icons: NotRequired[Annotated[list[Icon], SOUND]]
    mimeType: NotRequired[Annotated[str, LENIENT]]
    size: NotRequired[Annotated[int, LENIENT]]
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    type: NotRequired[Literal["resource_link"]]


class TextContentBlock(Extensible):
    text: str
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    type: NotRequired[Literal["text"]]


class PromptRequest(Extensible):
    sessionId: str
    prompt: list[
        TextContentBlock
        | ImageContentBlock
        | AudioContentBlock
        | ResourceContentBlock
        | EmbeddedResourceContentBlock
        | OtherContentBlock
    ]


class CancelSessionNotification(Extensible):
    sessionId: str
