"""Parameters of a client's messages in version 1 of the protocol.

Written by ``tests/acp/write_types.py`` from the official schema, drafts and all; `crow.acp.params`
reads them.
"""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from crow.acp.params import LENIENT, SOUND, Extensible


class AuthenticateRequest(Extensible):
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


class LogoutRequest(Extensible):
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


class McpServerSse(Extensible):
    name: str
    url: str
    headers: NotRequired[list[HttpHeader]]


class McpServerSseVariant(McpServerSse):
    type: Literal["sse"]


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


McpServer: TypeAlias = (
    McpServerHttpVariant | McpServerSseVariant | McpServerAcpVariant | McpServerStdio
)


class Annotations(Extensible):
    audience: NotRequired[Annotated[list[Literal["assistant", "user"]], LENIENT, SOUND]]
    lastModified: NotRequired[Annotated[str, LENIENT]]
    priority: NotRequired[Annotated[float, LENIENT]]


class TextContent(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    text: str


class ContentBlockText(TextContent):
    type: Literal["text"]


class ImageContent(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    data: str
    mimeType: str
    uri: NotRequired[Annotated[str, LENIENT]]


class ContentBlockImage(ImageContent):
    type: Literal["image"]


class AudioContent(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    data: str
    mimeType: str


class ContentBlockAudio(AudioContent):
    type: Literal["audio"]


class ResourceLink(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    description: NotRequired[Annotated[str, LENIENT]]
    mimeType: NotRequired[Annotated[str, LENIENT]]
    name: str
    size: NotRequired[Annotated[int, LENIENT]]
    title: NotRequired[Annotated[str, LENIENT]]
    uri: str


class ContentBlockResourceLink(ResourceLink):
    type: Literal["resource_link"]


class TextResourceContents(Extensible):
    mimeType: NotRequired[Annotated[str, LENIENT]]
    text: str
    uri: str


class BlobResourceContents(Extensible):
    blob: str
    mimeType: NotRequired[Annotated[str, LENIENT]]
    uri: str


EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents


class EmbeddedResource(Extensible):
    annotations: NotRequired[Annotated[Annotations, LENIENT]]
    resource: EmbeddedResourceResource


class ContentBlockResource(EmbeddedResource):
    type: Literal["resource"]


ContentBlock: TypeAlias = (
    ContentBlockText
    | ContentBlockImage
    | ContentBlockAudio
    | ContentBlockResourceLink
    | ContentBlockResource
)


class SystemPrompt(Extensible):
    mode: str
    content: list[ContentBlock]


class NewSessionRequest(Extensible):
    cwd: str
    additionalDirectories: NotRequired[list[str]]
    mcpServers: NotRequired[list[McpServer]]
    systemPrompt: NotRequired[SystemPrompt]


class LoadSessionRequest(Extensible):
    mcpServers: NotRequired[list[McpServer]]
    cwd: str
    additionalDirectories: NotRequired[list[str]]
    sessionId: str
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


class ResumeSessionRequest(Extensible):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[list[str]]
    mcpServers: NotRequired[list[McpServer]]
    systemPrompt: NotRequired[SystemPrompt]


class CloseSessionRequest(Extensible):
    sessionId: str


class SetSessionModeRequest(Extensible):
    sessionId: str
    modeId: str


class SetSessionConfigOptionRequestFields(Extensible):
    sessionId: str
    configId: str


class SetSessionConfigOptionRequestBoolean(SetSessionConfigOptionRequestFields):
    type: Literal["boolean"]
    value: bool


class SetSessionConfigOptionRequestValueId(SetSessionConfigOptionRequestFields):
    value: str


SetSessionConfigOptionRequest: TypeAlias = (
    SetSessionConfigOptionRequestBoolean | SetSessionConfigOptionRequestValueId
)


class PromptRequest(Extensible):
    sessionId: str
    prompt: list[ContentBlock]


class CancelNotification(Extensible):
    sessionId: str


class MessageMcpNotification(Extensible):
    serverId: str
    requestId: str
    method: str
    params: NotRequired[dict[str, Any]]
