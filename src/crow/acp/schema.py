"""Parameters of a client's messages in version 1 of the protocol.

Written by ``tests/acp/write_schema.py`` from the official library; `crow.acp.params` reads them.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from crow.acp.params import LENIENT, SOUND


class AuthenticateRequest(TypedDict):
    methodId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class LogoutRequest(TypedDict):
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
    headers: list[HttpHeader]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["http"]]


class McpServerStdio(TypedDict):
    name: str
    command: str
    args: list[str]
    env: list[EnvVariable]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class SseMcpServer(TypedDict):
    name: str
    url: str
    headers: list[HttpHeader]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: NotRequired[Literal["sse"]]


class NewSessionRequest(TypedDict):
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: Annotated[list[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio], SOUND]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class LoadSessionRequest(TypedDict):
    mcpServers: Annotated[list[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio], SOUND]
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    sessionId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class ResumeSessionRequest(TypedDict):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio], SOUND]
    ]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class ForkSessionRequest(TypedDict):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[Annotated[list[str], SOUND]]
    mcpServers: NotRequired[
        Annotated[list[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio], SOUND]
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
    audience: NotRequired[Annotated[list[Literal["assistant", "user"]], SOUND]]
    lastModified: NotRequired[Annotated[str, LENIENT]]
    priority: NotRequired[Annotated[float, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class AudioContentBlock(TypedDict):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    data: str
    mimeType: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: Literal["audio"]


class BlobResourceContents(TypedDict):
    blob: str
    mimeType: NotRequired[Annotated[str, LENIENT]]
    uri: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class TextResourceContents(TypedDict):
    mimeType: NotRequired[Annotated[str, LENIENT]]
    text: str
    uri: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class EmbeddedResourceContentBlock(TypedDict):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    resource: TextResourceContents | BlobResourceContents
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: Literal["resource"]


class ImageContentBlock(TypedDict):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    data: str
    mimeType: str
    uri: NotRequired[Annotated[str, LENIENT]]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: Literal["image"]


class ResourceContentBlock(TypedDict):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    description: NotRequired[Annotated[str, LENIENT]]
    mimeType: NotRequired[Annotated[str, LENIENT]]
    name: str
    size: NotRequired[Annotated[int, LENIENT]]
    title: NotRequired[Annotated[str, LENIENT]]
    uri: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: Literal["resource_link"]


class TextContentBlock(TypedDict):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    text: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    type: Literal["text"]


class PromptRequest(TypedDict):
    sessionId: str
    prompt: list[
        TextContentBlock
        | ImageContentBlock
        | AudioContentBlock
        | ResourceContentBlock
        | EmbeddedResourceContentBlock
    ]
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class SetSessionModeRequest(TypedDict):
    sessionId: str
    modeId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class CancelNotification(TypedDict):
    sessionId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class SetSessionConfigOptionSelectRequest(TypedDict):
    sessionId: str
    configId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    value: str


class SetSessionConfigOptionBooleanRequest(TypedDict):
    sessionId: str
    configId: str
    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]
    value: bool
    type: NotRequired[Literal["boolean"]]
