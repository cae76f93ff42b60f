"""Each key of Claude Code's settings: taken, an option of an extension, or left with a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crow.settings import load
from crow.settings.foreign import IDLE, LEFT, UNKNOWN
from crow.settings.merged import CLAUDES, OPTIONS, SWITCHES

KEYS = """
$schema additionalDirectoryConfigRoots additionalMarketplaces advisorModel agent
agentPushNotifEnabled allowAllClaudeAiMcps allowClaudeInChromeWithManagedMcp
allowManagedHooksOnly allowManagedMcpServersOnly allowManagedPermissionRulesOnly
allowNestedModelAccessUnderForceLogin allowedChannelPlugins allowedHttpHookUrls
allowedMarketplaces allowedMcpServers allowedProviders alwaysThinkingEnabled apiKeyHelper
appendPlugins askUserQuestionTimeout attribution attributionProject attributionProjectPolicy
autoCompactEnabled autoCompactOfferAnswer autoCompactRaisedForLoad autoCompactWindow autoConnectIde
autoContinueAtUsageLimit autoDreamEnabled autoInstallIdeExtension autoMemoryDirectory
autoMemoryEnabled autoMode autoScrollEnabled autoUpdatesChannel autoUploadSessions availableModels
availableModelsMatch awaySummaryEnabled awsAuthRefresh awsCredentialExport axScreenReader
bashEditDiffEnabled bashOutputMaxChars blockedMarketplaces breakReminder browserExternalPageTools
channelsEnabled claudeMd claudeMdExcludes clawdFileProgressEnabled cleanupPeriodDays
companyAnnouncements crossSessionInbound daemonColdStart defaultShell deniedMcpServers deniedModels
desktopMcpServersListScope desktopSessionCleanupPeriodDays dialogExpiry diffTool disableAgentView
disableAllHooks disableArtifact disableAutoMode disableBrowserExternalNavigation
disableBundledSkills disableClaudeAiConnectors disableCommandPluginSources
disableDeepLinkRegistration disableDirectMcpSkills disableMobileSimulatorTools
disableRemoteControl disableReplyCheck disableSideloadFlags disableSkillShellExecution
disableWindowsBashCommandSplit disableWorkflows disabledMcpjsonServers doneMeansMerged
downloadsMirrorUrl editorMode effortLevel emojiCompletionEnabled enableAllProjectMcpServers
enableArtifact enableWorkflows enabledMcpjsonServers enabledPlugins enforceAvailableModels env
externalEditorContext extraKnownMarketplaces fallbackModel fastMode fastModePerSessionOptIn
feedbackDrafts feedbackSurveyRate fileCheckpointingEnabled fileSuggestion footerLinksRegexes
forceLoginGatewayUrl forceLoginMethod forceLoginOrgUUID forceRemoteSettingsRefresh
gatewayInternalNetworks gcpAuthRefresh hooks httpHookAllowedEnvVars idleCompaction
includeCoAuthoredBy includeGitInstructions inputNeededNotifEnabled isolatePeerMachines
keybindingFlavor language managedMcpServers managedSourcesBehavior maxEffortLevel maxProseWidth
minimumVersion model modelCatalogPublicKey modelCatalogUrl modelOverrides modelPicker modelPricing
modelProposedGoals modelSettings otelHeadersHelper outputStyle parentSettingsBehavior
permissionExplainerEnabled permissions plansDirectory pluginConfigs pluginSuggestionMarketplaces
pluginTrustMessage policyHelper policyHelpers prUrlTemplate precomputeArmTokens
precomputeCompactionEnabled preferredNotifChannel prefersReducedMotion prependPlugins
processWrapper promptCacheTtl promptSuggestionEnabled proxyAuthHelper quietHours remote
remoteControl remoteControlAtStartup remoteMessageReceipts remoteTools
requireCoworkFullVmSandbox requiredMaximumVersion requiredMinimumVersion respectGitignore
respondToBashCommands responseComparisonEnabled sandbox showClearContextOnPlanAccept
showMessageTimestamps showThinkingSummaries showTurnDuration skillListingBudgetFraction
skillListingMaxDescChars skillOverrides skipDangerousModePermissionPrompt skipWebFetchPreflight
skipWorkflowUsageWarning skippedMarketplaces skippedPlugins spellcheck spinnerTipsEnabled
spinnerTipsOverride spinnerVerbs sshConfigs sshHostAllowlist sshHostCommands statusLine
strictKnownMarketplaces strictPluginOnlyCustomization subagentPromptCacheTtl subagentStatusLine
switchModelsOnFlag syncClaudeAiPlugins syncClaudeAiSkills syntaxHighlightingDisabled
taskOutputMaxChars teammateDefaultModel teammateMode terminalProgressBarEnabled
terminalTitleFromRename theme timeFormat timeZone todoFeatureEnabled totalTokensReminder
totalTokensReminderAfterUserTurn totalTokensReminderBudget tui ultracode useAutoModeDuringPlan
verbose viewMode vimInsertModeRemaps voice voiceEnabled wheelScrollAccelerationEnabled
workflowKeywordTriggerEnabled workflowSizeGuideline worktree wslInheritsWindowsSettings xaaIdp
""".split()
"""Those of Claude Code 2.1.332, and of its schema at SchemaStore (November 2026)."""
TAKEN = {*CLAUDES, *SWITCHES, "$schema"}


def write(table: object) -> Path:
    path = Path.home() / ".claude/settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(table))
    return path


def test_every_key_has_a_fate_and_only_one() -> None:
    left = [key for keys in LEFT.values() for key in keys]
    known = [*TAKEN, *IDLE, *left]
    assert [key for key in KEYS if key not in known] == []
    cannot_be_asked = ["fallbackModel", "model"]
    assert sorted(key for key in left if key in TAKEN | IDLE) == cannot_be_asked
    assert len(left) == len({*left})
    assert OPTIONS.keys() <= TAKEN


@pytest.mark.parametrize("key", [key for key in KEYS if key not in TAKEN])
def test_a_key_that_is_not_taken_is_kept_with_what_to_do(tmp_path: Path, key: str) -> None:
    write({key: "x"})
    settings = load(tmp_path)
    assert settings.problems == ()
    told = [(each.table, each.why) for each in settings.passed_over]
    why = next((why for why, keys in LEFT.items() if key in keys), "")
    assert told == ([] if key in IDLE else [({key: "x"}, why)])


def test_a_key_that_nobody_knows_is_said_to_be_such(tmp_path: Path) -> None:
    write({"nonsense": 1})
    (left,) = load(tmp_path).passed_over
    assert (dict(left.table), left.why) == ({"nonsense": 1}, UNKNOWN)


def test_keys_that_are_options_of_extensions_are_theirs(tmp_path: Path) -> None:
    write(
        {
            "agent": "reviewer",
            "attribution": {"commit": "By hand.", "pr": ""},
            "claudeMdExcludes": ["**/other/CLAUDE.md"],
            "disabledMcpjsonServers": ["web"],
            "language": "Latin",
            "outputStyle": "Learning",
        }
    )
    settings = load(tmp_path)
    assert (settings.problems, settings.passed_over) == ((), ())
    assert settings.extensions == {
        "subagents": {"main": "reviewer"},
        "system_prompt": {
            "attribution": {"commit": "By hand.", "pr": ""},
            "language": "Latin",
        },
        "instructions": {"exclude": ["**/other/CLAUDE.md"]},
        "mcp": {"off": ["web"]},
        "output_styles": {"style": "Learning"},
    }
    write({"attribution": False, "agent": 7})
    (problem,) = load(tmp_path).problems
    assert "'extensions.subagents.main' must be text" in problem
