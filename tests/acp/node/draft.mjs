// Drives an agent with the official TypeScript library of version 2, and writes what happened as one
// JSON object. Usage: node draft.mjs DIRECTORY COMMAND [ARGUMENT...]

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const [cwd, command, ...args] = process.argv.slice(2);
const { agent, client } = acp.methods;
const text = (said) => [{ type: "text", text: said }];
const kinds = (updates) => [...new Set(updates.map((update) => update.sessionUpdate))];

/** One client of one process: records every update, and allows whatever it is asked once. */
async function connected(work) {
  const child = spawn(command, args, { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", (code) => resolve(code)));
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const seen = { updates: [], asked: [], waiting: [] };
  const app = acp
    .client({ name: "node-client" })
    .onNotification(client.session.update, ({ params: { update } }) => {
      seen.updates.push(update);
      seen.waiting = seen.waiting.filter((each) => !each(update));
    })
    .onRequest(client.session.requestPermission, ({ params }) => {
      seen.asked.push(params);
      const chosen = params.options.find((option) => option.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId: chosen.optionId } };
    });
  seen.until = (test) =>
    new Promise((resolve) => seen.waiting.push((update) => (test(update) ? (resolve(update), true) : false)));
  const result = await app.connectWith(stream, async (context) => {
    const greeting = await context.request(agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      info: { name: "node-client", version: "1" },
      capabilities: {},
    });
    /** Prompt, and wait until nothing is worked on any more. */
    const turn = async (sessionId, said) => {
      const idle = seen.until((update) => update.sessionUpdate === "state_update" && update.state === "idle");
      const { messageId } = await context.request(agent.session.prompt, { sessionId, prompt: text(said) });
      return { messageId, stopReason: (await idle).stopReason };
    };
    return await work({ context, greeting, seen, turn });
  });
  child.stdin.end();
  return { ...result, status: await ended };
}

const first = await connected(async ({ context, greeting, seen, turn }) => {
  const { sessionId, configOptions } = await context.request(agent.session.new, { cwd });
  const created = await turn(sessionId, "Create a file called test.txt");
  await turn(sessionId, "Run `echo hello`");
  // A command that has said something runs; this one never ends by itself.
  const running = seen.until((update) => update.status === "in_progress");
  const over = seen.until((update) => update.toolCallId && ["completed", "failed"].includes(update.status));
  const begun = seen.until((update) => update.sessionUpdate === "terminal_output_chunk");
  const ended = turn(sessionId, "Run `echo begun; tail -f /dev/null`");
  const { toolCallId } = await running;
  const told = await Promise.race([begun, over]);
  if (told.status) throw new Error(`the command ended by itself: ${JSON.stringify(told)}`);
  await context.request(agent.toolCall.cancel, { sessionId, toolCallId });
  const cancelled = await ended;
  const chunks = seen.updates.filter((update) => update.sessionUpdate === "terminal_output_chunk");
  return {
    sessionId,
    protocol: greeting.protocolVersion,
    options: configOptions.map((option) => option.configId),
    created: created.stopReason,
    message: created.messageId,
    fileIsThere: existsSync(join(cwd, "test.txt")),
    asked: seen.asked.map((params) => params.subject.type),
    printed: chunks.map((update) => Buffer.from(update.data, "base64").toString()).join(""),
    cancelled: cancelled.stopReason,
    statuses: seen.updates.filter((update) => update.status === "cancelled").length,
    kinds: kinds(seen.updates),
  };
});

const later = await connected(async ({ context, seen }) => {
  const { sessionId } = first;
  const { sessions } = await context.request(agent.session.list, { cwd });
  const idle = seen.until((update) => update.sessionUpdate === "state_update");
  await context.request(agent.session.resume, { sessionId, cwd, replayFrom: { type: "start" } });
  await idle; // the library calls back for notifications in its own time
  const said = seen.updates.filter((update) => update.sessionUpdate === "user_message");
  const states = seen.updates.filter((update) => update.sessionUpdate === "state_update");
  await context.request(agent.session.close, { sessionId });
  await context.request(agent.session.delete, { sessionId });
  return {
    listed: sessions.map((session) => session.sessionId),
    said: said.map((update) => update.content[0].text),
    message: said[0].messageId,
    states: states.map((update) => update.state),
  };
});

process.stdout.write(JSON.stringify({ first, later }));
