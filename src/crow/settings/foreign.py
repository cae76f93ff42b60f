"""Claude Code's keys and what becomes of each: taken, an option of an extension, or left.

What is left is said to a person once, in groups, each with what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

Table = dict[str, Any]

IDLE = frozenset({"includeCoAuthoredBy", "respectGitignore", "enabledMcpjsonServers"})
"""Keys that say what Crow does anyway: it adds no line of its own to commits, leaves out what git
ignores, and asks once for all that a project would start."""
LEFT: Mapping[str, frozenset[str]] = {
    told: frozenset(keys.split())
    for told, keys in {
        "the model and how hard it thinks are set by 'model', 'params', 'models' and "
        "extensions.fallback in .crow/settings.json (crow models)": """
            advisorModel alwaysThinkingEnabled availableModels availableModelsMatch deniedModels
            enforceAvailableModels fallbackModel fastMode fastModePerSessionOptIn maxEffortLevel
            model modelCatalogPublicKey modelCatalogUrl modelOverrides modelPicker
            modelPricing modelSettings promptCacheTtl subagentPromptCacheTtl switchModelsOnFlag
            teammateDefaultModel ultracode""",
        "sign-ins are made by crow login, a provider's own variables, and 'providers' in "
        ".crow/settings.json": """
            allowNestedModelAccessUnderForceLogin allowedProviders awsAuthRefresh
            awsCredentialExport forceLoginGatewayUrl forceLoginMethod forceLoginOrgUUID
            gatewayInternalNetworks gcpAuthRefresh proxyAuthHelper xaaIdp""",
        "nobody judges calls in your place: rules say what may run (crow permissions list)": """
            autoMode disableAutoMode permissionExplainerEnabled skipAutoPermissionPrompt
            skipDangerousModePermissionPrompt useAutoModeDuringPlan""",
        "which servers and plugins there are is said by crow mcp, crow plugin market and "
        "extensions.mcp.only": """
            additionalMarketplaces allowAllClaudeAiMcps allowClaudeInChromeWithManagedMcp
            allowedChannelPlugins
            allowedMarketplaces appendPlugins blockedMarketplaces channelsEnabled
            desktopMcpServersListScope disableClaudeAiConnectors
            disableCommandPluginSources disableDirectMcpSkills disableSideloadFlags
            enableAllProjectMcpServers extraKnownMarketplaces managedMcpServers
            pluginSuggestionMarketplaces pluginTrustMessage prependPlugins skippedMarketplaces
            skippedPlugins strictKnownMarketplaces syncClaudeAiPlugins syncClaudeAiSkills""",
        "how conversations are kept and shortened, how much output and which skills there are, is "
        "said by 'extensions' in .crow/settings.json (docs/settings.md)": """
            additionalDirectoryConfigRoots askUserQuestionTimeout autoCompactEnabled
            autoCompactOfferAnswer autoCompactRaisedForLoad autoCompactWindow bashEditDiffEnabled
            bashOutputMaxChars defaultShell desktopSessionCleanupPeriodDays dialogExpiry
            disableBundledSkills disableReplyCheck disableSkillShellExecution
            disableWindowsBashCommandSplit doneMeansMerged fileCheckpointingEnabled fileSuggestion
            idleCompaction includeGitInstructions modelProposedGoals plansDirectory
            precomputeArmTokens precomputeCompactionEnabled processWrapper respondToBashCommands
            skillListingBudgetFraction skillListingMaxDescChars skillOverrides skipWebFetchPreflight
            taskOutputMaxChars todoFeatureEnabled totalTokensReminder
            totalTokensReminderAfterUserTurn totalTokensReminderBudget worktree""",
        "Crow writes down no memory by itself, and reads AGENTS.md, CLAUDE.md and rules": """
            autoDreamEnabled autoMemoryDirectory autoMemoryEnabled claudeMd""",
        "OTEL_... variables say where measurements go (docs/telemetry.md)": "otelHeadersHelper",
        "it is about Claude Code's own screen; Crow's is in docs/terminal.md": """
            autoConnectIde autoInstallIdeExtension autoScrollEnabled awaySummaryEnabled
            axScreenReader breakReminder browserExternalPageTools clawdFileProgressEnabled
            companyAnnouncements diffTool disableBrowserExternalNavigation
            disableDeepLinkRegistration disableMobileSimulatorTools editorMode
            emojiCompletionEnabled externalEditorContext feedbackDrafts feedbackSurveyRate
            footerLinksRegexes inputNeededNotifEnabled keybindingFlavor maxProseWidth
            preferredNotifChannel prefersReducedMotion prUrlTemplate promptSuggestionEnabled
            quietHours responseComparisonEnabled showClearContextOnPlanAccept
            showMessageTimestamps showThinkingSummaries showTurnDuration spellcheck
            spinnerTipsEnabled spinnerTipsOverride spinnerVerbs subagentStatusLine
            syntaxHighlightingDisabled terminalProgressBarEnabled terminalTitleFromRename theme
            timeFormat timeZone tui verbose viewMode vimInsertModeRemaps voice voiceEnabled
            wheelScrollAccelerationEnabled""",
        "it is about Claude Code's own services and updates, which Crow has not": """
            agentPushNotifEnabled attributionProject attributionProjectPolicy
            autoContinueAtUsageLimit autoUpdatesChannel autoUploadSessions crossSessionInbound
            daemonColdStart disableAgentView disableArtifact disableRemoteControl disableWorkflows
            downloadsMirrorUrl enableArtifact enableWorkflows forceRemoteSettingsRefresh
            isolatePeerMachines managedSourcesBehavior minimumVersion parentSettingsBehavior
            policyHelper policyHelpers remote remoteControl remoteControlAtStartup
            remoteMessageReceipts remoteTools requireCoworkFullVmSandbox requiredMaximumVersion
            requiredMinimumVersion skipWorkflowUsageWarning sshConfigs sshHostAllowlist
            sshHostCommands teammateMode workflowKeywordTriggerEnabled workflowSizeGuideline
            wslInheritsWindowsSettings""",
    }.items()
}
"""Keys that are left, by what to do instead."""
UNKNOWN = "Crow does not know it, and takes nothing from it"


def as_options(table: Table, options: Mapping[str, tuple[str, str]]) -> Table:
    """A table of settings whose keys that are ``options`` of extensions stand where options do."""
    moved = {key: value for key, value in table.items() if key not in options}
    given: object = moved.get("extensions", {})
    extensions: Table = {**cast(Table, given)} if isinstance(given, dict) else {}
    for key in [each for each in options if each in table]:
        name, option = options[key]
        own: object = extensions.get(name, {})
        value: Any = {} if key == "attribution" and isinstance(table[key], bool) else table[key]
        if isinstance(own, dict):
            extensions[name] = {option: value, **cast(Table, own)}
    return {**moved, "extensions": extensions}


def instead(keys: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """What to do in the place of keys that are left, and for which of them."""
    known = {key: told for told, group in LEFT.items() for key in group}
    groups: dict[str, list[str]] = {}
    for key in keys:
        if key not in IDLE:
            groups.setdefault(known.get(key, UNKNOWN), []).append(key)
    yield from groups.items()
