"""Parameters of a client's messages in version 1 of the protocol.

Written by ``tests/acp/write_schema.py`` from the official library; `crow.acp.params` reads them.
"""

from typing import Annotated, Literal, NotRequired

from crow.acp.params import LENIENT, SOUND, Extensible


class AuthenticateRequest(Extensible):
    methodId: str


class LogoutRequest(Extensible):
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
    headers: list[HttpHeader]
    type: NotRequired[Literal["http"]]


class McpServerStdio(Extensible):
    name: str
    command: str
    args: list[str]
    env: list[EnvVariable]


class SseMcpServer(Extensible):
    name: str
    url: str
    headers: list[HttpHeader]
    type: NotRequired[Literal["sse"]]


class NewSessionRequest(Extensible):
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: Annotated[list[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio], SOUND]


class LoadSessionRequest(Extensible):
    mcpServers: Annotated[list[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio], SOUND]
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    sessionId: str


class ResumeSessionRequest(Extensible):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio], SOUND]
    ]


class ForkSessionRequest(Extensible):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio], SOUND]
    ]


class ListSessionsRequest(Extensible):
    cwd: NotRequired[str]
    cursor: NotRequired[str]


class CloseSessionRequest(Extensible):
    sessionId: str


class DeleteSessionRequest(Extensible):
    sessionId: str


class Annotations(Extensible):
    audience: NotRequired[Annotated[list[Literal["assistant", "user"]], SOUND]]
    lastModified: NotRequired[Annotated[str, LENIENT]]
    priority: NotRequired[Annotated[float, LENIENT]]


class AudioContentBlock(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    data: str
    mimeType: str
    type: Literal["audio"]


class BlobResourceContents(Extensible):
    blob: str
    mimeType: NotRequired[Annotated[str, LENIENT]]
    uri: str


class TextResourceContents(Extensible):
    mimeType: NotRequired[Annotated[str, LENIENT]]
    text: str
    uri: str


class EmbeddedResourceContentBlock(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    resource: TextResourceContents | BlobResourceContents
    type: Literal["resource"]


class ImageContentBlock(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    data: str
    mimeType: str
    uri: NotRequired[Annotated[str, LENIENT]]
    type: Literal["image"]


class ResourceContentBlock(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    description: NotRequired[Annotated[str, LENIENT]]
    mimeType: NotRequired[Annotated[str, LENIENT]]
    name: str
    size: NotRequired[Annotated[int, LENIENT]]
    title: NotRequired[Annotated[str, LENIENT]]
    uri: str
    type: Literal["resource_link"]


class TextContentBlock(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    text: str
    type: Literal["text"]


class PromptRequest(Extensible):
    sessionId: str
    prompt: list[
        TextContentBlock
        | ImageContentBlock
        | AudioContentBlock
        | ResourceContentBlock
        | EmbeddedResourceContentBlock
    ]


class SetSessionModeRequest(Extensible):
    sessionId: str
    modeId: str


class CancelNotification(Extensible):
    sessionId: str


class SetSessionConfigOptionSelectRequest(Extensible):
    sessionId: str
    configId: str
    value: str


class SetSessionConfigOptionBooleanRequest(Extensible):
    sessionId: str
    configId: str
    value: bool
    type: NotRequired[Literal["boolean"]]
