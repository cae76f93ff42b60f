// The library of npm that drives `claude -p`, with its path set to Crow: what it reads, as JSON.
import { query } from "@anthropic-ai/claude-agent-sdk";

const [, , crow, cwd, settings, permissionMode = "default"] = process.argv;
const told = [];
const asked = [];
const options = {
  cwd,
  pathToClaudeCodeExecutable: crow,
  includeHookEvents: true,
  includePartialMessages: true,
  settingSources: ["user"],
  settings,
  permissionMode,
  agents: { critic: { description: "Judges", prompt: "Judge." } },
  canUseTool: async (name, input) => {
    asked.push(name);
    const answers = (input.questions ?? []).map((each) => [each.question, each.options[0].label]);
    const given = answers.length ? { answers: Object.fromEntries(answers) } : {};
    return { behavior: "allow", updatedInput: { ...input, ...given } };
  },
};
const prompts = (async function* () {
  yield { type: "user", message: { role: "user", content: "Go" }, parent_tool_use_id: null };
})();
const talk = query({ prompt: prompts, options });
const servers = await talk.mcpServerStatus();
const agents = await talk.supportedAgents();
for await (const message of talk) {
  told.push(message);
  if (message.type === "result") break;
}
console.log(JSON.stringify({ told, asked, servers, agents }));
