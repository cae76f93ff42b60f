"""The messages of the agent in version 2 of the protocol: updates, requests, and answers.

Written by ``tests/acp/write_types.py`` from the official schema, drafts and all. For type
checkers only: nothing imports it at run time.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Extensible(TypedDict):
    _meta: NotRequired[dict[str, Any]]


class Annotations(Extensible):
    audience: NotRequired[list[Literal["assistant", "user"]] | None]
    lastModified: NotRequired[str | None]
    priority: NotRequired[float | None]


class TextContent(Extensible):
    text: str
    annotations: NotRequired[Annotations | None]


class ContentBlockText(TextContent):
    type: Literal["text"]


class ImageContent(Extensible):
    data: str
    mimeType: str
    uri: NotRequired[str | None]
    annotations: NotRequired[Annotations | None]


class ContentBlockImage(ImageContent):
    type: Literal["image"]


class AudioContent(Extensible):
    data: str
    mimeType: str
    annotations: NotRequired[Annotations | None]


class ContentBlockAudio(AudioContent):
    type: Literal["audio"]


class Icon(Extensible):
    src: str
    mimeType: NotRequired[str | None]
    sizes: NotRequired[list[str] | None]
    theme: NotRequired[Literal["light", "dark"] | None]


class ResourceLink(Extensible):
    name: str
    uri: str
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    icons: NotRequired[list[Icon] | None]
    mimeType: NotRequired[str | None]
    size: NotRequired[int | None]
    annotations: NotRequired[Annotations | None]


class ContentBlockResourceLink(ResourceLink):
    type: Literal["resource_link"]


class TextResourceContents(Extensible):
    text: str
    uri: str
    mimeType: NotRequired[str | None]


class BlobResourceContents(Extensible):
    blob: str
    uri: str
    mimeType: NotRequired[str | None]


EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents


class EmbeddedResource(Extensible):
    resource: EmbeddedResourceResource
    annotations: NotRequired[Annotations | None]


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


class DiffChangeFields(Extensible):
    fileType: NotRequired[Literal["text", "binary", "directory", "symlink"] | None]
    mimeType: NotRequired[str | None]


class DiffPathChange(Extensible):
    path: str


class DiffChangeAdd(DiffPathChange, DiffChangeFields):
    operation: Literal["add"]


class DiffChangeDelete(DiffPathChange, DiffChangeFields):
    operation: Literal["delete"]


class DiffChangeModify(DiffPathChange, DiffChangeFields):
    operation: Literal["modify"]


class DiffPathPairChange(Extensible):
    oldPath: str
    path: str


class DiffChangeMove(DiffPathPairChange, DiffChangeFields):
    operation: Literal["move"]


class DiffChangeCopy(DiffPathPairChange, DiffChangeFields):
    operation: Literal["copy"]


DiffChange: TypeAlias = (
    DiffChangeAdd | DiffChangeDelete | DiffChangeModify | DiffChangeMove | DiffChangeCopy
)


class DiffPatch(Extensible):
    format: Literal["git_patch"]
    text: str


class Diff(Extensible):
    changes: list[DiffChange]
    patch: NotRequired[DiffPatch | None]


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


class ToolCallCancelCapabilities(Extensible):
    pass


class ToolCallCapabilities(Extensible):
    cancel: NotRequired[ToolCallCancelCapabilities | None]


class ToolCallUpdate(Extensible):
    toolCallId: str
    name: NotRequired[str | None]
    title: NotRequired[str | None]
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
    status: NotRequired[
        Literal["pending", "in_progress", "paused", "completed", "failed", "cancelled"] | None
    ]
    content: NotRequired[list[ToolCallContent] | None]
    locations: NotRequired[list[ToolCallLocation] | None]
    rawInput: NotRequired[Any]
    rawOutput: NotRequired[Any]
    capabilities: NotRequired[ToolCallCapabilities | None]


class ToolCallPermissionSubject(Extensible):
    toolCall: ToolCallUpdate


class RequestPermissionSubjectToolCall(ToolCallPermissionSubject):
    type: Literal["tool_call"]


class CommandPermissionSubject(Extensible):
    command: str
    cwd: str
    toolCallId: NotRequired[str | None]
    terminalId: NotRequired[str | None]


class RequestPermissionSubjectCommand(CommandPermissionSubject):
    type: Literal["command"]


RequestPermissionSubject: TypeAlias = (
    RequestPermissionSubjectToolCall | RequestPermissionSubjectCommand
)


class PermissionOption(Extensible):
    optionId: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class RequestPermissionRequest(Extensible):
    sessionId: str
    title: str
    description: NotRequired[str | None]
    subject: NotRequired[RequestPermissionSubject | None]
    options: list[PermissionOption]


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
    type: Literal["object"]
    title: NotRequired[str | None]
    properties: dict[str, ElicitationPropertySchema]
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
    requestId: int | str


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


class Implementation(Extensible):
    name: str
    title: NotRequired[str | None]
    version: str


class PromptImageCapabilities(Extensible):
    pass


class PromptAudioCapabilities(Extensible):
    pass


class PromptEmbeddedContextCapabilities(Extensible):
    pass


class PromptCapabilities(Extensible):
    image: NotRequired[PromptImageCapabilities | None]
    audio: NotRequired[PromptAudioCapabilities | None]
    embeddedContext: NotRequired[PromptEmbeddedContextCapabilities | None]


class McpStdioCapabilities(Extensible):
    pass


class McpHttpCapabilities(Extensible):
    pass


class McpAcpCapabilities(Extensible):
    pass


class McpCapabilities(Extensible):
    stdio: NotRequired[McpStdioCapabilities | None]
    http: NotRequired[McpHttpCapabilities | None]
    acp: NotRequired[McpAcpCapabilities | None]


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


class SessionCapabilities(Extensible):
    prompt: NotRequired[PromptCapabilities | None]
    mcp: NotRequired[McpCapabilities | None]
    delete: NotRequired[SessionDeleteCapabilities | None]
    additionalDirectories: NotRequired[SessionAdditionalDirectoriesCapabilities | None]
    systemPrompt: NotRequired[SessionSystemPromptCapabilities | None]
    fork: NotRequired[SessionForkCapabilities | None]
    archive: NotRequired[SessionArchiveCapabilities | None]
    status: NotRequired[SessionStatusCapabilities | None]
    title: NotRequired[SessionTitleCapabilities | None]


class AuthStatusCapabilities(Extensible):
    pass


class AgentAuthCapabilities(Extensible):
    status: NotRequired[AuthStatusCapabilities | None]


class ProvidersCapabilities(Extensible):
    pass


class AgentCapabilities(Extensible):
    session: NotRequired[SessionCapabilities | None]
    auth: NotRequired[AgentAuthCapabilities | None]
    providers: NotRequired[ProvidersCapabilities | None]


class EnvVariable(Extensible):
    name: str
    value: str


class AuthMethodTerminal(Extensible):
    methodId: str
    name: str
    description: NotRequired[str | None]
    args: NotRequired[list[str]]
    env: NotRequired[list[EnvVariable]]


class AuthMethodTerminalVariant(AuthMethodTerminal):
    type: Literal["terminal"]


class AuthMethodAgent(Extensible):
    methodId: str
    name: str
    description: NotRequired[str | None]


class AuthMethodAgentVariant(AuthMethodAgent):
    type: Literal["agent"]


AuthMethod: TypeAlias = AuthMethodTerminalVariant | AuthMethodAgentVariant


class InitializeResponse(Extensible):
    protocolVersion: int
    info: Implementation
    capabilities: NotRequired[AgentCapabilities]
    authMethods: NotRequired[list[AuthMethod]]


class LoginAuthResponse(Extensible):
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


class LogoutAuthResponse(Extensible):
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


class SessionConfigOptionFields(Extensible):
    configId: str
    name: str
    description: NotRequired[str | None]
    category: NotRequired[str | None]


class SessionConfigSelectOption(Extensible):
    value: str
    name: str
    description: NotRequired[str | None]


class SessionConfigSelectGroup(Extensible):
    groupId: str
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


class TextCommandInput(Extensible):
    hint: str


class AvailableCommandInputText(TextCommandInput):
    type: Literal["text"]


AvailableCommandInput: TypeAlias = AvailableCommandInputText


class Command(Extensible):
    name: str
    description: str
    input: NotRequired[AvailableCommandInput | None]


class AvailableCommandCommand(Command):
    type: Literal["command"]


AvailableCommand: TypeAlias = AvailableCommandCommand


class NewSessionResponse(Extensible):
    sessionId: str
    configOptions: NotRequired[list[SessionConfigOption]]
    availableCommands: NotRequired[list[AvailableCommand]]


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
    configOptions: NotRequired[list[SessionConfigOption]]
    availableCommands: NotRequired[list[AvailableCommand]]


class ArchiveSessionResponse(Extensible):
    pass


class UnarchiveSessionResponse(Extensible):
    pass


class BackgroundTerminal(Extensible):
    terminalId: str


class BackgroundWorkTerminal(BackgroundTerminal):
    type: Literal["terminal"]


class BackgroundToolCall(Extensible):
    toolCallId: str


class BackgroundWorkToolCall(BackgroundToolCall):
    type: Literal["tool_call"]


class BackgroundSubagent(Extensible):
    sessionId: str


class BackgroundWorkSubagent(BackgroundSubagent):
    type: Literal["subagent"]


BackgroundWork: TypeAlias = BackgroundWorkTerminal | BackgroundWorkToolCall | BackgroundWorkSubagent


class RunningStateUpdate(Extensible):
    background: NotRequired[list[BackgroundWork] | None]


class StateUpdateRunning(RunningStateUpdate):
    state: Literal["running"]


class Usage(Extensible):
    totalTokens: int
    inputTokens: int
    outputTokens: int
    thoughtTokens: NotRequired[int | None]
    cachedReadTokens: NotRequired[int | None]
    cachedWriteTokens: NotRequired[int | None]


class IdleStateUpdateFields(Extensible):
    usage: NotRequired[Usage | None]
    background: NotRequired[list[BackgroundWork] | None]


class IdleStateUpdateEndTurn(IdleStateUpdateFields):
    stopReason: Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class UnsupportedProtocolVersionErrorData(Extensible):
    requested: int
    supported: list[int]


class SessionNotFoundErrorData(Extensible):
    sessionId: str


ErrorData: TypeAlias = (
    UnsupportedProtocolVersionErrorData | SessionNotFoundErrorData | dict[str, Any]
)


class Error(Extensible):
    code: Literal[-32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002, -32022]
    message: str
    data: NotRequired[ErrorData | None]


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
    background: NotRequired[list[BackgroundWork] | None]


class StateUpdateRequiresAction(RequiresActionStateUpdate):
    state: Literal["requires_action"]


class UnknownStateUpdate(Extensible):
    background: NotRequired[list[BackgroundWork] | None]


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


class SessionStatusResponse(Extensible):
    status: Literal["open", "saved"]
    state: NotRequired[StateUpdate | None]


class SetSessionTitleResponse(Extensible):
    title: str


class ResumeSessionResponse(Extensible):
    configOptions: NotRequired[list[SessionConfigOption]]
    availableCommands: NotRequired[list[AvailableCommand]]


class CloseSessionResponse(Extensible):
    pass


class CancelToolCallResponse(Extensible):
    pass


class CancelTerminalResponse(Extensible):
    pass


class SetSessionConfigOptionResponse(Extensible):
    configOptions: list[SessionConfigOption]


class PromptResponse(Extensible):
    messageId: str


class ContentChunk(Extensible):
    messageId: str
    content: ContentBlock


class SessionUpdateUserMessageChunk(ContentChunk):
    sessionUpdate: Literal["user_message_chunk"]


class UserMessage(Extensible):
    messageId: str
    content: NotRequired[list[ContentBlock] | None]


class SessionUpdateUserMessage(UserMessage):
    sessionUpdate: Literal["user_message"]


class SessionUpdateAgentMessageChunk(ContentChunk):
    sessionUpdate: Literal["agent_message_chunk"]


class AgentMessage(Extensible):
    messageId: str
    content: NotRequired[list[ContentBlock] | None]


class SessionUpdateAgentMessage(AgentMessage):
    sessionUpdate: Literal["agent_message"]


class SessionUpdateAgentThoughtChunk(ContentChunk):
    sessionUpdate: Literal["agent_thought_chunk"]


class AgentThought(Extensible):
    messageId: str
    content: NotRequired[list[ContentBlock] | None]


class SessionUpdateAgentThought(AgentThought):
    sessionUpdate: Literal["agent_thought"]


class SessionUpdateStateUpdateRunning(StateUpdateRunning):
    sessionUpdate: Literal["state_update"]


class SessionUpdateStateUpdateIdleEndTurn(StateUpdateIdleEndTurn):
    sessionUpdate: Literal["state_update"]


class SessionUpdateStateUpdateIdleError(StateUpdateIdleError):
    sessionUpdate: Literal["state_update"]


class SessionUpdateStateUpdateIdleNone(StateUpdateIdleNone):
    sessionUpdate: Literal["state_update"]


class SessionUpdateStateUpdateRequiresAction(StateUpdateRequiresAction):
    sessionUpdate: Literal["state_update"]


class SessionUpdateStateUpdateUnknown(StateUpdateUnknown):
    sessionUpdate: Literal["state_update"]


class ToolCallContentChunk(Extensible):
    toolCallId: str
    content: ToolCallContent


class SessionUpdateToolCallContentChunk(ToolCallContentChunk):
    sessionUpdate: Literal["tool_call_content_chunk"]


class SessionUpdateToolCallUpdate(ToolCallUpdate):
    sessionUpdate: Literal["tool_call_update"]


class TerminalOutput(Extensible):
    data: str


class TerminalExitStatus(Extensible):
    exitCode: NotRequired[int | None]
    signal: NotRequired[str | None]


class TerminalSize(Extensible):
    cols: int
    rows: int


class TerminalCancelCapabilities(Extensible):
    pass


class TerminalCapabilities(Extensible):
    cancel: NotRequired[TerminalCancelCapabilities | None]


class TerminalUpdate(Extensible):
    terminalId: str
    command: NotRequired[str | None]
    cwd: NotRequired[str | None]
    output: NotRequired[TerminalOutput | None]
    exitStatus: NotRequired[TerminalExitStatus | None]
    size: NotRequired[TerminalSize | None]
    capabilities: NotRequired[TerminalCapabilities | None]


class SessionUpdateTerminalUpdate(TerminalUpdate):
    sessionUpdate: Literal["terminal_update"]


class TerminalOutputChunk(Extensible):
    terminalId: str
    data: str


class SessionUpdateTerminalOutputChunk(TerminalOutputChunk):
    sessionUpdate: Literal["terminal_output_chunk"]


class PlanEntry(Extensible):
    content: str
    priority: Literal["high", "medium", "low"]
    status: Literal["pending", "in_progress", "completed", "cancelled"]


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


class AvailableCommandsUpdate(Extensible):
    availableCommands: list[AvailableCommand]


class SessionUpdateAvailableCommandsUpdate(AvailableCommandsUpdate):
    sessionUpdate: Literal["available_commands_update"]


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
    | SessionUpdateUserMessage
    | SessionUpdateAgentMessageChunk
    | SessionUpdateAgentMessage
    | SessionUpdateAgentThoughtChunk
    | SessionUpdateAgentThought
    | SessionUpdateStateUpdateRunning
    | SessionUpdateStateUpdateIdleEndTurn
    | SessionUpdateStateUpdateIdleError
    | SessionUpdateStateUpdateIdleNone
    | SessionUpdateStateUpdateRequiresAction
    | SessionUpdateStateUpdateUnknown
    | SessionUpdateToolCallContentChunk
    | SessionUpdateToolCallUpdate
    | SessionUpdateTerminalUpdate
    | SessionUpdateTerminalOutputChunk
    | SessionUpdatePlanUpdate
    | SessionUpdatePlanRemoved
    | SessionUpdateAvailableCommandsUpdate
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


class UpdateSessionNotification(Extensible):
    sessionId: str
    update: SessionUpdate


class CompleteElicitationNotification(Extensible):
    elicitationId: str


class AuthStatusUpdateNotification(Extensible):
    state: Literal["authenticated", "unauthenticated", "not_required", "unknown"]
    accounts: NotRequired[list[AuthAccount]]
