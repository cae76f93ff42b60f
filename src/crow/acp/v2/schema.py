"""Parameters of a client's messages in version 2 of the protocol.

Written by ``tests/acp/write_types.py`` from the official schema, drafts and all; `crow.acp.params`
reads them.
"""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from crow.acp.params import LENIENT, SOUND, Extensible, Other


class LoginAuthRequest(Extensible):
    methodId: str


class ListProvidersRequest(Extensible):
    pass


class SetProviderRequest(Extensible):
    providerId: str
    apiType: str
    baseUrl: str
    headers: NotRequired[dict[str, str]]


class DisableProviderRequest(Extensible):
    providerId: str


class LogoutAuthRequest(Extensible):
    pass


class AuthStatusRequest(Extensible):
    pass


class HttpHeader(Extensible):
    name: str
    value: str


class McpServerHttp(Extensible):
    name: str
    url: str
    headers: NotRequired[list[HttpHeader]]


class McpServerHttpVariant(McpServerHttp):
    type: Literal["http"]


class McpServerAcp(Extensible):
    name: str
    serverId: str


class McpServerAcpVariant(McpServerAcp):
    type: Literal["acp"]


class EnvVariable(Extensible):
    name: str
    value: str


class McpServerStdio(Extensible):
    name: str
    command: str
    args: NotRequired[list[str]]
    env: NotRequired[list[EnvVariable]]


class McpServerStdioVariant(McpServerStdio):
    type: Literal["stdio"]


class McpServerOther(Extensible):
    type: Annotated[str, Other(("acp", "http", "stdio"))]


McpServer: TypeAlias = (
    McpServerHttpVariant | McpServerAcpVariant | McpServerStdioVariant | McpServerOther
)


class Annotations(Extensible):
    audience: NotRequired[Annotated[list[str], LENIENT, SOUND]]
    lastModified: NotRequired[Annotated[str, LENIENT]]
    priority: NotRequired[Annotated[float, LENIENT]]


class TextContent(Extensible):
    text: str
    annotations: NotRequired[Annotated[Annotations, LENIENT]]


class ContentBlockText(TextContent):
    type: Literal["text"]


class ImageContent(Extensible):
    data: str
    mimeType: str
    uri: NotRequired[Annotated[str, LENIENT]]
    annotations: NotRequired[Annotated[Annotations, LENIENT]]


class ContentBlockImage(ImageContent):
    type: Literal["image"]


class AudioContent(Extensible):
    data: str
    mimeType: str
    annotations: NotRequired[Annotated[Annotations, LENIENT]]


class ContentBlockAudio(AudioContent):
    type: Literal["audio"]


class Icon(Extensible):
    src: str
    mimeType: NotRequired[Annotated[str, LENIENT]]
    sizes: NotRequired[Annotated[list[str], LENIENT, SOUND]]
    theme: NotRequired[Annotated[str, LENIENT]]


class ResourceLink(Extensible):
    name: str
    uri: str
    title: NotRequired[Annotated[str, LENIENT]]
    description: NotRequired[Annotated[str, LENIENT]]
    icons: NotRequired[Annotated[list[Icon], LENIENT, SOUND]]
    mimeType: NotRequired[Annotated[str, LENIENT]]
    size: NotRequired[Annotated[int, LENIENT]]
    annotations: NotRequired[Annotated[Annotations, LENIENT]]


class ContentBlockResourceLink(ResourceLink):
    type: Literal["resource_link"]


class TextResourceContents(Extensible):
    text: str
    uri: str
    mimeType: NotRequired[Annotated[str, LENIENT]]


class BlobResourceContents(Extensible):
    blob: str
    uri: str
    mimeType: NotRequired[Annotated[str, LENIENT]]


EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents


class EmbeddedResource(Extensible):
    resource: EmbeddedResourceResource
    annotations: NotRequired[Annotated[Annotations, LENIENT]]


class ContentBlockResource(EmbeddedResource):
    type: Literal["resource"]


class ContentBlockOther(Extensible):
    type: Annotated[str, Other(("audio", "image", "resource", "resource_link", "text"))]


ContentBlock: TypeAlias = (
    ContentBlockText
    | ContentBlockImage
    | ContentBlockAudio
    | ContentBlockResourceLink
    | ContentBlockResource
    | ContentBlockOther
)


class SystemPrompt(Extensible):
    mode: str
    content: list[ContentBlock]


class NewSessionRequest(Extensible):
    cwd: str
    additionalDirectories: NotRequired[list[str]]
    mcpServers: NotRequired[list[McpServer]]
    systemPrompt: NotRequired[SystemPrompt]


class ListSessionsRequest(Extensible):
    cwd: NotRequired[str]
    cursor: NotRequired[str]
    archived: NotRequired[str]


class DeleteSessionRequest(Extensible):
    sessionId: str


class ForkSessionRequest(Extensible):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[list[str]]
    mcpServers: NotRequired[list[McpServer]]
    systemPrompt: NotRequired[SystemPrompt]


class ArchiveSessionRequest(Extensible):
    sessionId: str


class UnarchiveSessionRequest(Extensible):
    sessionId: str


class SessionStatusRequest(Extensible):
    sessionId: str


class SetSessionTitleRequest(Extensible):
    sessionId: str
    title: str


class ReplayFromStart(Extensible):
    pass


class ReplayFromStartVariant(ReplayFromStart):
    type: Literal["start"]


class ReplayFromOther(Extensible):
    type: Annotated[str, Other(("start",))]


ReplayFrom: TypeAlias = ReplayFromStartVariant | ReplayFromOther


class ResumeSessionRequest(Extensible):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[list[str]]
    mcpServers: NotRequired[list[McpServer]]
    replayFrom: NotRequired[ReplayFrom]
    systemPrompt: NotRequired[SystemPrompt]


class CloseSessionRequest(Extensible):
    sessionId: str


class CancelToolCallRequest(Extensible):
    sessionId: str
    toolCallId: str


class CancelTerminalRequest(Extensible):
    sessionId: str
    terminalId: str


class SetSessionConfigOptionRequestFields(Extensible):
    sessionId: str
    configId: str


class SetSessionConfigOptionRequestId(SetSessionConfigOptionRequestFields):
    type: Literal["id"]
    value: str


class SetSessionConfigOptionRequestBoolean(SetSessionConfigOptionRequestFields):
    type: Literal["boolean"]
    value: bool


class SetSessionConfigOptionRequestOther(SetSessionConfigOptionRequestFields):
    type: Annotated[str, Other(("boolean", "id"))]
    value: Any


SetSessionConfigOptionRequest: TypeAlias = (
    SetSessionConfigOptionRequestId
    | SetSessionConfigOptionRequestBoolean
    | SetSessionConfigOptionRequestOther
)


class PromptRequest(Extensible):
    sessionId: str
    prompt: list[ContentBlock]


class CancelSessionNotification(Extensible):
    sessionId: str


class MessageMcpNotification(Extensible):
    serverId: str
    requestId: str
    method: str
    params: NotRequired[dict[str, Any]]
