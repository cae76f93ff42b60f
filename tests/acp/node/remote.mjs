// Connects to an agent's server with the official TypeScript library, over the transport that the
// URL names, and writes what happened as one JSON object. Usage: node remote.mjs URL DIRECTORY

import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const [url, cwd] = process.argv.slice(2);
const { agent, client } = acp.methods;

/** One client; what `work` returns, with what the client was told and asked. */
async function connected(work) {
  const stream = url.startsWith("ws") ? createWebSocketStream(url) : createHttpStream(url);
  const seen = { text: "", cards: 0, asked: 0 };
  const app = acp
    .client({ name: "node-client" })
    .onNotification(client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") seen.text += update.content.text;
      if (update.sessionUpdate === "tool_call") seen.cards += 1;
    })
    .onRequest(client.session.requestPermission, ({ params }) => {
      seen.asked += 1;
      const { optionId } = params.options.find((option) => option.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId } };
    });
  const result = await app.connectWith(await stream, async (context) => {
    await context.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    return await work((method, params) => context.request(method, params));
  });
  return { ...result, ...seen };
}

const prompt = (said) => [{ type: "text", text: said }];

const first = await connected(async (ask) => {
  const { sessionId } = await ask(agent.session.new, { cwd, mcpServers: [] });
  const { stopReason } = await ask(agent.session.prompt, {
    sessionId,
    prompt: prompt("Create a file called test.txt"),
  });
  return { sessionId, stopReason };
});
const { sessionId } = first;
const later = await connected(async (ask) => {
  await ask(agent.session.load, { sessionId, cwd, mcpServers: [] });
  const { stopReason } = await ask(agent.session.prompt, { sessionId, prompt: prompt("Run `echo two`") });
  await ask(agent.session.close, { sessionId });
  return { stopReason };
});
console.log(JSON.stringify({ first, later }));
process.exit(0);
