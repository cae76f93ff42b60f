// Offers an agent an MCP server of the client's own, with the official TypeScript library, and writes
// what was asked of it as one JSON object. Usage: node mcp.mjs DIRECTORY COMMAND [ARGUMENT...]

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";

const [cwd, command, ...args] = process.argv.slice(2);
const { agent, client } = acp.methods;
const tool = { name: "where", description: "Where the cursor is", inputSchema: { type: "object" } };
const asked = [];

/** The server: one tool, which says how far it is before it answers. */
async function handler({ method, params, notify }) {
  asked.push(method);
  switch (method) {
    case "server/discover":
      return { result: { resultType: "complete", supportedVersions: [acp.MCP_PROTOCOL_VERSION], capabilities: { tools: {} } } };
    case "tools/list":
      return { result: { resultType: "complete", tools: [tool] } };
    case "tools/call":
      await notify("notifications/progress", { progressToken: params._meta.progressToken, progress: 1, message: "looking" });
      return { result: { resultType: "complete", content: [{ type: "text", text: "line 7" }] } };
    default:
      throw new acp.McpProtocolError(-32601, `there is no ${method}`);
  }
}

const child = spawn(command, args, { cwd, stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => child.once("exit", (code) => resolve(code)));
const provider = new acp.McpOverAcpProvider();
const updates = [];
const app = acp
  .client({ name: "node-client" })
  .onNotification(client.session.update, ({ params }) => void updates.push(params.update))
  .onRequest(client.session.requestPermission, ({ params }) => ({
    outcome: { outcome: "selected", optionId: params.options.find((each) => each.kind === "allow_once").optionId },
  }))
  .onRequest(client.mcp.message, provider.handleRequest);
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const told = await app.connectWith(stream, async (context) => {
  const greeting = await context.request(agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
    clientInfo: { name: "node-client", version: "1" },
  });
  const server = provider.registerServer(context, { name: "desk", handler });
  const { sessionId } = await context.request(agent.session.new, { cwd, mcpServers: [server.declaration] });
  const prompt = [{ type: "text", text: "Where is the cursor?" }];
  const { stopReason } = await context.request(agent.session.prompt, { sessionId, prompt });
  await new Promise((resolve) => setImmediate(resolve));
  return { announced: greeting.agentCapabilities.mcpCapabilities.acp, stopReason };
});
child.stdin.end();
const cards = updates.filter((update) => update.sessionUpdate.startsWith("tool_call"));
process.stdout.write(JSON.stringify({ ...told, asked, cards, status: await ended }));
