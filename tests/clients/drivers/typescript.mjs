// The protocol's TypeScript library as a client: does what it is told by lines of JSON over a
// connection, and tells what came of it. Usage: node typescript.mjs PORT COMMAND [ARGUMENT...]

import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";

const installed = createRequire(new URL("../../acp/node/", import.meta.url));
const acp = await import(installed.resolve("@agentclientprotocol/sdk"));
const [port, command, ...args] = process.argv.slice(2);
const { agent, client } = acp.methods;
const test = connect(Number(port), "127.0.0.1");
const tell = (event) => test.write(JSON.stringify(event) + "\n");
let kind = "allow_once";
let names = [];

const app = acp
  .client({ name: "driver" })
  .onNotification(client.session.update, ({ params: { update } }) => tell({ event: "update", update }))
  .onRequest(client.session.requestPermission, ({ params: { options, toolCall } }) => {
    const [kinds, offered] = [options.map(({ kind }) => kind), options.map(({ name }) => name)];
    tell({ event: "asked", kinds, names: offered, shown: toolCall });
    const name = names.shift();
    const { optionId } = options.find((option) => (name ? option.name === name : option.kind === kind));
    return { outcome: { outcome: "selected", optionId } };
  })
  .onRequest(client.elicitation.create, ({ params: { message, requestedSchema } }) => {
    const [asked] = Object.values(requestedSchema.properties);
    tell({ event: "form", names: asked.enum, text: message });
    const name = names.shift();
    return name ? { action: "accept", content: { answer: name } } : { action: "decline" };
  })
  .onRequest(client.fs.readTextFile, async ({ params: { path, line, limit } }) => {
    tell({ event: "read", path });
    const text = await readFile(path, "utf8").catch(() => "");
    const start = (line ?? 1) - 1;
    const lines = text.split(/(?<=\n)/).slice(start, limit == null ? undefined : start + limit);
    return { content: lines.join("") };
  })
  .onRequest(client.fs.writeTextFile, async ({ params: { path, content } }) => {
    tell({ event: "wrote", path });
    await writeFile(path, content);
    return {};
  });

/** What a step is: each asks the agent, and gives its answer. */
const steps = {
  initialize: (context, { forms }) =>
    context.request(agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {
        fs: { readTextFile: true, writeTextFile: true },
        ...(forms && { elicitation: { form: {} } }),
      },
    }),
  new: (context, { cwd }) => context.request(agent.session.new, { cwd, mcpServers: [] }),
  load: (context, { cwd, session: sessionId }) =>
    context.request(agent.session.load, { cwd, sessionId, mcpServers: [] }),
  resume: (context, { cwd, session: sessionId }) =>
    context.request(agent.session.resume, { cwd, sessionId, mcpServers: [] }),
  mode: (context, { mode: modeId, session: sessionId }) =>
    context.request(agent.session.setMode, { modeId, sessionId }),
  prompt: (context, { blocks: prompt, session: sessionId }) =>
    context.request(agent.session.prompt, { prompt, sessionId }),
  cancel: (context, { session: sessionId }) => context.notify(agent.session.cancel, { sessionId }),
  answer: (_context, step) => void ([kind, names] = [step.kind ?? kind, step.names ?? []]),
};

/** Do a step, and tell of its end when the library has called back for all that came before. */
async function take(context, step) {
  try {
    const result = await steps[step.do](context, step);
    await new Promise((resolve) => setImmediate(resolve));
    tell({ event: "done", id: step.id, result: result ?? {} });
  } catch (error) {
    tell({ event: "done", id: step.id, error: error.message });
  }
}

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
await app.connectWith(stream, async (context) => {
  for await (const line of createInterface({ input: test })) void take(context, JSON.parse(line));
});
child.stdin.end();
test.end();
