// Has an agent change a large file, then loads that session with a second process of the agent, and
// writes what came over the wire. Usage: node large.mjs DIRECTORY COMMAND [ARGUMENT...]

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [cwd, command, ...args] = process.argv.slice(2);
const { agent, client } = acp.methods;

/** One client of one process: what `work` returns, the longest line it got, and all diffs. */
async function connected(work) {
  const child = spawn(command, args, { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const seen = { longest: 0, line: 0, diffs: [], asked: [] };
  child.stdout.on("data", (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      const end = chunk.indexOf(10, at);
      seen.line += (end < 0 ? chunk.length : end + 1) - at;
      seen.longest = Math.max(seen.longest, seen.line);
      if (end < 0) break;
      [seen.line, at] = [0, end + 1];
    }
  });
  const diffs = (content) => (content ?? []).filter((each) => each.type === "diff");
  const app = acp
    .client({ name: "node-client" })
    .onNotification(client.session.update, ({ params: { update } }) => {
      if (Array.isArray(update.content)) seen.diffs.push(...diffs(update.content));
    })
    .onRequest(client.session.requestPermission, ({ params }) => {
      seen.asked.push(...diffs(params.toolCall.content));
      const { optionId } = params.options.find((option) => option.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId } };
    });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const result = await app.connectWith(stream, async (context) => {
    await context.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    return await work((method, params) => context.request(method, params));
  });
  child.stdin.end();
  return { ...result, ...seen };
}

const first = await connected(async (ask) => {
  const { sessionId } = await ask(agent.session.new, { cwd, mcpServers: [] });
  const prompt = [{ type: "text", text: "Change it" }];
  const { stopReason } = await ask(agent.session.prompt, { sessionId, prompt });
  return { sessionId, stopReason };
});
const later = await connected(async (ask) => {
  await ask(agent.session.load, { sessionId: first.sessionId, cwd, mcpServers: [] });
  return {};
});
console.log(JSON.stringify({ first, later }));
