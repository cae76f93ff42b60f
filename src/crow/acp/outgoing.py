"""The messages of the agent in version 1 of the protocol: updates, requests, and answers.

Written by ``tests/acp/write_types.py`` from the official schema, drafts and all. For type
checkers only: nothing imports it at run time.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Extensible(TypedDict):
    _meta: NotRequired[dict[str, Any]]


class WriteTextFileRequest(Extensible):
    sessionId: str
    path: str
    content: str


class ReadTextFileRequest(Extensible):
    sessionId: str
    path: str
    line: NotRequired[int | None]
    limit: NotRequired[int | None]


class Annotations(Extensible):
    audience: NotRequired[list[Literal["assistant", "user"]] | None]
    lastModified: NotRequired[str | None]
    priority: NotRequired[float | None]


class TextContent(Extensible):
    annotations: NotRequired[Annotations | None]
    text: str


class ContentBlockText(TextContent):
    type: Literal["text"]


class ImageContent(Extensible):
    annotations: NotRequired[Annotations | None]
    data: str
    mimeType: str
    uri: NotRequired[str | None]


class ContentBlockImage(ImageContent):
    type: Literal["image"]


class AudioContent(Extensible):
    annotations: NotRequired[Annotations | None]
    data: str
    mimeType: str


class ContentBlockAudio(AudioContent):
    type: Literal["audio"]


class ResourceLink(Extensible):
    annotations: NotRequired[Annotations | None]
    description: NotRequired[str | None]
    mimeType: NotRequired[str | None]
    name: str
    size: NotRequired[int | None]
    title: NotRequired[str | None]
    uri: str


class ContentBlockResourceLink(ResourceLink):
    type: Literal["resource_link"]


class TextResourceContents(Extensible):
    mimeType: NotRequired[str | None]
    text: str
    uri: str


class BlobResourceContents(Extensible):
    blob: str
    mimeType: NotRequired[str | None]
    uri: str


EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents


class EmbeddedResource(Extensible):
    annotations: NotRequired[Annotations | None]
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


class Content(Extensible):
    content: ContentBlock


class ToolCallContentContent(Content):
    type: Literal["content"]


class Diff(Extensible):
    path: str
    oldText: NotRequired[str | None]
    newText: str


class ToolCallContentDiff(Diff):
    type: Literal["diff"]


class Terminal(Extensible):
    terminalId: str


class ToolCallContentTerminal(Terminal):
    type: Literal["terminal"]


ToolCallContent: TypeAlias = ToolCallContentContent | ToolCallContentDiff | ToolCallContentTerminal


class ToolCallLocation(Extensible):
    path: str
    line: NotRequired[int | None]


class ToolCallUpdate(Extensible):
    toolCallId: str
    kind: NotRequired[
        Literal[
            "read",
            "edit",
            "delete",
            "move",
            "search",
            "execute",
            "think",
            "fetch",
            "switch_mode",
            "other",
        ]
        | None
    ]
    status: NotRequired[Literal["pending", "in_progress", "completed", "failed"] | None]
    title: NotRequired[str | None]
    name: NotRequired[str | None]
    content: NotRequired[list[ToolCallContent] | None]
    locations: NotRequired[list[ToolCallLocation] | None]
    rawInput: NotRequired[Any]
    rawOutput: NotRequired[Any]


class PermissionOption(Extensible):
    optionId: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class RequestPermissionRequest(Extensible):
    sessionId: str
    toolCall: ToolCallUpdate
    options: list[PermissionOption]


class EnvVariable(Extensible):
    name: str
    value: str


class CreateTerminalRequest(Extensible):
    sessionId: str
    command: str
    args: NotRequired[list[str]]
    env: NotRequired[list[EnvVariable]]
    cwd: NotRequired[str | None]
    outputByteLimit: NotRequired[int | None]


class TerminalOutputRequest(Extensible):
    sessionId: str
    terminalId: str


class ReleaseTerminalRequest(Extensible):
    sessionId: str
    terminalId: str


class WaitForTerminalExitRequest(Extensible):
    sessionId: str
    terminalId: str


class KillTerminalRequest(Extensible):
    sessionId: str
    terminalId: str


class CreateElicitationRequestFields(Extensible):
    message: str


class EnumOption(Extensible):
    const: str
    title: str
    description: NotRequired[str | None]


class StringPropertySchema(Extensible):
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    minLength: NotRequired[int | None]
    maxLength: NotRequired[int | None]
    pattern: NotRequired[str | None]
    format: NotRequired[Literal["email", "uri", "date", "date-time"] | None]
    default: NotRequired[str | None]
    enum: NotRequired[list[str] | None]
    oneOf: NotRequired[list[EnumOption] | None]


class ElicitationPropertySchemaString(StringPropertySchema):
    type: Literal["string"]


class NumberPropertySchema(Extensible):
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    minimum: NotRequired[float | None]
    maximum: NotRequired[float | None]
    default: NotRequired[float | None]


class ElicitationPropertySchemaNumber(NumberPropertySchema):
    type: Literal["number"]


class IntegerPropertySchema(Extensible):
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    minimum: NotRequired[int | None]
    maximum: NotRequired[int | None]
    default: NotRequired[int | None]


class ElicitationPropertySchemaInteger(IntegerPropertySchema):
    type: Literal["integer"]


class BooleanPropertySchema(Extensible):
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    default: NotRequired[bool | None]


class ElicitationPropertySchemaBoolean(BooleanPropertySchema):
    type: Literal["boolean"]


class StringMultiSelectItems(Extensible):
    enum: list[str]


class MultiSelectItemsString(StringMultiSelectItems):
    type: Literal["string"]


class TitledMultiSelectItems(Extensible):
    anyOf: list[EnumOption]


MultiSelectItems: TypeAlias = MultiSelectItemsString | TitledMultiSelectItems


class MultiSelectPropertySchema(Extensible):
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    minItems: NotRequired[int | None]
    maxItems: NotRequired[int | None]
    items: MultiSelectItems
    default: NotRequired[list[str] | None]


class ElicitationPropertySchemaArray(MultiSelectPropertySchema):
    type: Literal["array"]


ElicitationPropertySchema: TypeAlias = (
    ElicitationPropertySchemaString
    | ElicitationPropertySchemaNumber
    | ElicitationPropertySchemaInteger
    | ElicitationPropertySchemaBoolean
    | ElicitationPropertySchemaArray
)


class ElicitationSchema(Extensible):
    type: NotRequired[Literal["object"]]
    title: NotRequired[str | None]
    properties: NotRequired[dict[str, ElicitationPropertySchema]]
    required: NotRequired[list[str] | None]
    description: NotRequired[str | None]


class ElicitationFormModeFields(Extensible):
    requestedSchema: ElicitationSchema


class ElicitationSessionScope(Extensible):
    sessionId: str
    toolCallId: NotRequired[str | None]


class ElicitationFormModeElicitationSessionScope(
    ElicitationSessionScope, ElicitationFormModeFields
):
    pass


class ElicitationRequestScope(Extensible):
    requestId: int | str | None


class ElicitationFormModeElicitationRequestScope(
    ElicitationRequestScope, ElicitationFormModeFields
):
    pass


ElicitationFormMode: TypeAlias = (
    ElicitationFormModeElicitationSessionScope | ElicitationFormModeElicitationRequestScope
)


class CreateElicitationRequestFormElicitationSessionScope(
    ElicitationFormModeElicitationSessionScope, CreateElicitationRequestFields
):
    mode: Literal["form"]


class CreateElicitationRequestFormElicitationRequestScope(
    ElicitationFormModeElicitationRequestScope, CreateElicitationRequestFields
):
    mode: Literal["form"]


class ElicitationUrlModeFields(Extensible):
    elicitationId: str
    url: str


class ElicitationUrlModeElicitationSessionScope(ElicitationSessionScope, ElicitationUrlModeFields):
    pass


class ElicitationUrlModeElicitationRequestScope(ElicitationRequestScope, ElicitationUrlModeFields):
    pass


ElicitationUrlMode: TypeAlias = (
    ElicitationUrlModeElicitationSessionScope | ElicitationUrlModeElicitationRequestScope
)


class CreateElicitationRequestUrlElicitationSessionScope(
    ElicitationUrlModeElicitationSessionScope, CreateElicitationRequestFields
):
    mode: Literal["url"]


class CreateElicitationRequestUrlElicitationRequestScope(
    ElicitationUrlModeElicitationRequestScope, CreateElicitationRequestFields
):
    mode: Literal["url"]


CreateElicitationRequest: TypeAlias = (
    CreateElicitationRequestFormElicitationSessionScope
    | CreateElicitationRequestFormElicitationRequestScope
    | CreateElicitationRequestUrlElicitationSessionScope
    | CreateElicitationRequestUrlElicitationRequestScope
)


class MessageMcpRequest(Extensible):
    serverId: str
    requestId: str
    method: str
    params: NotRequired[dict[str, Any] | None]


class PromptCapabilities(Extensible):
    image: NotRequired[bool]
    audio: NotRequired[bool]
    embeddedContext: NotRequired[bool]


class McpCapabilities(Extensible):
    http: NotRequired[bool]
    sse: NotRequired[bool]
    acp: NotRequired[bool]


class SessionListCapabilities(Extensible):
    pass


class SessionDeleteCapabilities(Extensible):
    pass


class SessionAdditionalDirectoriesCapabilities(Extensible):
    pass


class SessionSystemPromptOverrideCapabilities(Extensible):
    pass


class SessionSystemPromptModeCapabilities(Extensible):
    override: NotRequired[SessionSystemPromptOverrideCapabilities | None]


class SessionSystemPromptCapabilities(Extensible):
    mode: NotRequired[SessionSystemPromptModeCapabilities | None]


class SessionForkCapabilities(Extensible):
    pass


class SessionArchiveCapabilities(Extensible):
    pass


class SessionStatusCapabilities(Extensible):
    pass


class SessionTitleCapabilities(Extensible):
    pass


class SessionResumeCapabilities(Extensible):
    pass


class SessionCloseCapabilities(Extensible):
    pass


class SessionCapabilities(Extensible):
    list: NotRequired[SessionListCapabilities | None]
    delete: NotRequired[SessionDeleteCapabilities | None]
    additionalDirectories: NotRequired[SessionAdditionalDirectoriesCapabilities | None]
    systemPrompt: NotRequired[SessionSystemPromptCapabilities | None]
    fork: NotRequired[SessionForkCapabilities | None]
    archive: NotRequired[SessionArchiveCapabilities | None]
    status: NotRequired[SessionStatusCapabilities | None]
    title: NotRequired[SessionTitleCapabilities | None]
    resume: NotRequired[SessionResumeCapabilities | None]
    close: NotRequired[SessionCloseCapabilities | None]


class AuthStatusCapabilities(Extensible):
    pass


class LogoutCapabilities(Extensible):
    pass


class AgentAuthCapabilities(Extensible):
    status: NotRequired[AuthStatusCapabilities | None]
    logout: NotRequired[LogoutCapabilities | None]


class ProvidersCapabilities(Extensible):
    pass


class AgentCapabilities(Extensible):
    loadSession: NotRequired[bool]
    promptCapabilities: NotRequired[PromptCapabilities]
    mcpCapabilities: NotRequired[McpCapabilities]
    sessionCapabilities: NotRequired[SessionCapabilities]
    auth: NotRequired[AgentAuthCapabilities]
    providers: NotRequired[ProvidersCapabilities | None]


class AuthMethodTerminal(Extensible):
    id: str
    name: str
    description: NotRequired[str | None]
    args: NotRequired[list[str]]
    env: NotRequired[dict[str, str]]


class AuthMethodTerminalVariant(AuthMethodTerminal):
    type: Literal["terminal"]


class AuthMethodAgent(Extensible):
    id: str
    name: str
    description: NotRequired[str | None]


AuthMethod: TypeAlias = AuthMethodTerminalVariant | AuthMethodAgent


class Implementation(Extensible):
    name: str
    title: NotRequired[str | None]
    version: str


class InitializeResponse(Extensible):
    protocolVersion: int
    agentCapabilities: NotRequired[AgentCapabilities]
    authMethods: NotRequired[list[AuthMethod]]
    agentInfo: NotRequired[Implementation | None]


class AuthenticateResponse(Extensible):
    pass


class ProviderCurrentConfig(Extensible):
    apiType: str
    baseUrl: str


class ProviderInfo(Extensible):
    providerId: str
    supported: list[str]
    required: bool
    current: NotRequired[ProviderCurrentConfig | None]


class ListProvidersResponse(Extensible):
    providers: list[ProviderInfo]


class SetProviderResponse(Extensible):
    pass


class DisableProviderResponse(Extensible):
    pass


class LogoutResponse(Extensible):
    pass


class AuthAccount(Extensible):
    label: str
    active: NotRequired[bool | None]
    name: NotRequired[str | None]
    email: NotRequired[str | None]
    organization: NotRequired[str | None]


class AuthStatusResponse(Extensible):
    state: Literal["authenticated", "unauthenticated", "not_required", "unknown"]
    accounts: NotRequired[list[AuthAccount]]


class SessionMode(Extensible):
    id: str
    name: str
    description: NotRequired[str | None]


class SessionModeState(Extensible):
    currentModeId: str
    availableModes: list[SessionMode]


class SessionConfigOptionFields(Extensible):
    id: str
    name: str
    description: NotRequired[str | None]
    category: NotRequired[str | None]


class SessionConfigSelectOption(Extensible):
    value: str
    name: str
    description: NotRequired[str | None]


class SessionConfigSelectGroup(Extensible):
    group: str
    name: str
    options: list[SessionConfigSelectOption]


class SessionConfigSelect(Extensible):
    currentValue: str
    options: list[SessionConfigSelectOption] | list[SessionConfigSelectGroup]


class SessionConfigOptionSelect(SessionConfigSelect, SessionConfigOptionFields):
    type: Literal["select"]


class SessionConfigBoolean(Extensible):
    currentValue: bool


class SessionConfigOptionBoolean(SessionConfigBoolean, SessionConfigOptionFields):
    type: Literal["boolean"]


SessionConfigOption: TypeAlias = SessionConfigOptionSelect | SessionConfigOptionBoolean


class NewSessionResponse(Extensible):
    sessionId: str
    modes: NotRequired[SessionModeState | None]
    configOptions: NotRequired[list[SessionConfigOption] | None]


class LoadSessionResponse(Extensible):
    modes: NotRequired[SessionModeState | None]
    configOptions: NotRequired[list[SessionConfigOption] | None]


class SessionInfo(Extensible):
    sessionId: str
    cwd: str
    additionalDirectories: NotRequired[list[str]]
    title: NotRequired[str | None]
    updatedAt: NotRequired[str | None]
    archived: NotRequired[bool | None]


class ListSessionsResponse(Extensible):
    sessions: list[SessionInfo]
    nextCursor: NotRequired[str | None]


class DeleteSessionResponse(Extensible):
    pass


class ForkSessionResponse(Extensible):
    sessionId: str
    modes: NotRequired[SessionModeState | None]
    configOptions: NotRequired[list[SessionConfigOption] | None]


class ArchiveSessionResponse(Extensible):
    pass


class UnarchiveSessionResponse(Extensible):
    pass


class SessionStatusResponse(Extensible):
    status: Literal["open", "saved"]


class SetSessionTitleResponse(Extensible):
    title: str


class ResumeSessionResponse(Extensible):
    modes: NotRequired[SessionModeState | None]
    configOptions: NotRequired[list[SessionConfigOption] | None]


class CloseSessionResponse(Extensible):
    pass


class SetSessionModeResponse(Extensible):
    pass


class SetSessionConfigOptionResponse(Extensible):
    configOptions: list[SessionConfigOption]


class Usage(Extensible):
    totalTokens: int
    inputTokens: int
    outputTokens: int
    thoughtTokens: NotRequired[int | None]
    cachedReadTokens: NotRequired[int | None]
    cachedWriteTokens: NotRequired[int | None]


class PromptResponse(Extensible):
    stopReason: Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
    usage: NotRequired[Usage | None]


class ContentChunk(Extensible):
    content: ContentBlock
    messageId: NotRequired[str | None]


class SessionUpdateUserMessageChunk(ContentChunk):
    sessionUpdate: Literal["user_message_chunk"]


class SessionUpdateAgentMessageChunk(ContentChunk):
    sessionUpdate: Literal["agent_message_chunk"]


class SessionUpdateAgentThoughtChunk(ContentChunk):
    sessionUpdate: Literal["agent_thought_chunk"]


class ToolCall(Extensible):
    toolCallId: str
    title: str
    name: NotRequired[str | None]
    kind: NotRequired[
        Literal[
            "read",
            "edit",
            "delete",
            "move",
            "search",
            "execute",
            "think",
            "fetch",
            "switch_mode",
            "other",
        ]
    ]
    status: NotRequired[Literal["pending", "in_progress", "completed", "failed"]]
    content: NotRequired[list[ToolCallContent]]
    locations: NotRequired[list[ToolCallLocation]]
    rawInput: NotRequired[Any]
    rawOutput: NotRequired[Any]


class SessionUpdateToolCall(ToolCall):
    sessionUpdate: Literal["tool_call"]


class SessionUpdateToolCallUpdate(ToolCallUpdate):
    sessionUpdate: Literal["tool_call_update"]


class PlanEntry(Extensible):
    content: str
    priority: Literal["high", "medium", "low"]
    status: Literal["pending", "in_progress", "completed"]


class Plan(Extensible):
    entries: list[PlanEntry]


class SessionUpdatePlan(Plan):
    sessionUpdate: Literal["plan"]


class PlanItems(Extensible):
    planId: str
    entries: list[PlanEntry]


class PlanUpdateContentItems(PlanItems):
    type: Literal["items"]


class PlanFile(Extensible):
    planId: str
    uri: str


class PlanUpdateContentFile(PlanFile):
    type: Literal["file"]


class PlanMarkdown(Extensible):
    planId: str
    content: str


class PlanUpdateContentMarkdown(PlanMarkdown):
    type: Literal["markdown"]


PlanUpdateContent: TypeAlias = (
    PlanUpdateContentItems | PlanUpdateContentFile | PlanUpdateContentMarkdown
)


class PlanUpdate(Extensible):
    plan: PlanUpdateContent


class SessionUpdatePlanUpdate(PlanUpdate):
    sessionUpdate: Literal["plan_update"]


class PlanRemoved(Extensible):
    planId: str


class SessionUpdatePlanRemoved(PlanRemoved):
    sessionUpdate: Literal["plan_removed"]


class UnstructuredCommandInput(Extensible):
    hint: str


AvailableCommandInput: TypeAlias = UnstructuredCommandInput


class AvailableCommand(Extensible):
    name: str
    description: str
    input: NotRequired[AvailableCommandInput | None]


class AvailableCommandsUpdate(Extensible):
    availableCommands: list[AvailableCommand]


class SessionUpdateAvailableCommandsUpdate(AvailableCommandsUpdate):
    sessionUpdate: Literal["available_commands_update"]


class CurrentModeUpdate(Extensible):
    currentModeId: str


class SessionUpdateCurrentModeUpdate(CurrentModeUpdate):
    sessionUpdate: Literal["current_mode_update"]


class ConfigOptionUpdate(Extensible):
    configOptions: list[SessionConfigOption]


class SessionUpdateConfigOptionUpdate(ConfigOptionUpdate):
    sessionUpdate: Literal["config_option_update"]


class SessionInfoUpdate(Extensible):
    title: NotRequired[str | None]
    updatedAt: NotRequired[str | None]


class SessionUpdateSessionInfoUpdate(SessionInfoUpdate):
    sessionUpdate: Literal["session_info_update"]


class Cost(Extensible):
    amount: float
    currency: str


class UsageUpdate(Extensible):
    used: int
    size: int
    cost: NotRequired[Cost | None]


class SessionUpdateUsageUpdate(UsageUpdate):
    sessionUpdate: Literal["usage_update"]


class Notice(Extensible):
    severity: Literal["info", "warning", "error"]
    title: str
    description: NotRequired[str | None]


class SessionUpdateNotice(Notice):
    sessionUpdate: Literal["notice"]


class CompactionUpdate(Extensible):
    compactionId: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    summary: NotRequired[list[ContentBlock] | None]
    error: NotRequired[str | None]


class SessionUpdateCompactionUpdate(CompactionUpdate):
    sessionUpdate: Literal["compaction_update"]


class CompactionSummaryChunk(Extensible):
    compactionId: str
    content: ContentBlock


class SessionUpdateCompactionSummaryChunk(CompactionSummaryChunk):
    sessionUpdate: Literal["compaction_summary_chunk"]


class SessionCancelCapabilities(Extensible):
    pass


class SubagentSessionCapabilities(Extensible):
    cancel: NotRequired[SessionCancelCapabilities | None]


class RunningStateUpdate(Extensible):
    pass


class StateUpdateRunning(RunningStateUpdate):
    state: Literal["running"]


class IdleStateUpdateFields(Extensible):
    usage: NotRequired[Usage | None]


class IdleStateUpdateEndTurn(IdleStateUpdateFields):
    stopReason: Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class Error(Extensible):
    code: Literal[-32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002]
    message: str
    data: NotRequired[Any]


class ErrorStopReason(Extensible):
    error: NotRequired[Error | None]


class IdleStateUpdateError(ErrorStopReason, IdleStateUpdateFields):
    stopReason: Literal["error"]


class IdleStateUpdateNone(IdleStateUpdateFields):
    stopReason: NotRequired[None]


IdleStateUpdate: TypeAlias = IdleStateUpdateEndTurn | IdleStateUpdateError | IdleStateUpdateNone


class StateUpdateIdleEndTurn(IdleStateUpdateEndTurn):
    state: Literal["idle"]


class StateUpdateIdleError(IdleStateUpdateError):
    state: Literal["idle"]


class StateUpdateIdleNone(IdleStateUpdateNone):
    state: Literal["idle"]


class RequiresActionStateUpdate(Extensible):
    pass


class StateUpdateRequiresAction(RequiresActionStateUpdate):
    state: Literal["requires_action"]


class UnknownStateUpdate(Extensible):
    pass


class StateUpdateUnknown(UnknownStateUpdate):
    state: Literal["unknown"]


StateUpdate: TypeAlias = (
    StateUpdateRunning
    | StateUpdateIdleEndTurn
    | StateUpdateIdleError
    | StateUpdateIdleNone
    | StateUpdateRequiresAction
    | StateUpdateUnknown
)


class SubagentUpdate(Extensible):
    sessionId: str
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    capabilities: NotRequired[SubagentSessionCapabilities | None]
    state: NotRequired[StateUpdate | None]
    cwd: NotRequired[str | None]
    additionalDirectories: NotRequired[list[str] | None]


class SessionUpdateSubagentUpdate(SubagentUpdate):
    sessionUpdate: Literal["subagent_update"]


class SessionMessage(Extensible):
    messageId: str
    senderSessionId: NotRequired[str | None]
    recipientSessionId: NotRequired[str | None]
    senderMessageId: NotRequired[str | None]
    recipientMessageId: NotRequired[str | None]
    content: NotRequired[list[ContentBlock] | None]


class SessionUpdateSessionMessage(SessionMessage):
    sessionUpdate: Literal["session_message"]


class SessionMessageChunk(Extensible):
    messageId: str
    content: ContentBlock


class SessionUpdateSessionMessageChunk(SessionMessageChunk):
    sessionUpdate: Literal["session_message_chunk"]


SessionUpdate: TypeAlias = (
    SessionUpdateUserMessageChunk
    | SessionUpdateAgentMessageChunk
    | SessionUpdateAgentThoughtChunk
    | SessionUpdateToolCall
    | SessionUpdateToolCallUpdate
    | SessionUpdatePlan
    | SessionUpdatePlanUpdate
    | SessionUpdatePlanRemoved
    | SessionUpdateAvailableCommandsUpdate
    | SessionUpdateCurrentModeUpdate
    | SessionUpdateConfigOptionUpdate
    | SessionUpdateSessionInfoUpdate
    | SessionUpdateUsageUpdate
    | SessionUpdateNotice
    | SessionUpdateCompactionUpdate
    | SessionUpdateCompactionSummaryChunk
    | SessionUpdateSubagentUpdate
    | SessionUpdateSessionMessage
    | SessionUpdateSessionMessageChunk
)


class SessionNotification(Extensible):
    sessionId: str
    update: SessionUpdate


class CompleteElicitationNotification(Extensible):
    elicitationId: str


class AuthStatusUpdateNotification(Extensible):
    state: Literal["authenticated", "unauthenticated", "not_required", "unknown"]
    accounts: NotRequired[list[AuthAccount]]
