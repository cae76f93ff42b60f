// acpx's own client, without its commands: does what it is told by lines of JSON over a connection,
// and tells what came of it. Usage: node acpx.mjs PORT COMMAND [ARGUMENT...]

import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";

const [port, ...argv] = process.argv.slice(2);
const test = connect({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true });
const tell = (event) => test.write(JSON.stringify(event) + "\n");
let kind = "allow_once";
let names = [];

/** The class of the client, in a file whose name is another in each release; not the command, which would run. */
async function found() {
  const folder = new URL("../../acp/node/node_modules/acpx/dist/", import.meta.url);
  const files = readdirSync(folder).filter((name) => name.endsWith(".js") && !name.startsWith("cli"));
  for (const file of files) {
    const each = Object.values(await import(new URL(file, folder))).find(({ name }) => name === "AcpClient");
    if (each) return each;
  }
  throw new Error("acpx has no AcpClient");
}

const AcpClient = await found();
let client;

function start({ forms }) {
  client = new AcpClient({
    agentCommand: argv.join(" "),
    agentArgv: argv,
    cwd: process.cwd(),
    permissionMode: "approve-all", // of what is written through the client; what the agent asks is answered below
    elicitationModes: forms ? ["form"] : [],
    suppressSdkConsoleErrors: true,
    onSessionUpdate: ({ update }) => tell({ event: "update", update }),
  });
  return client.start();
}

async function permit({ raw: { options, toolCall } }) {
  tell({ event: "asked", kinds: options.map(({ kind }) => kind), shown: toolCall });
  return { outcome: kind };
}

async function fill({ message, requestedSchema }) {
  const [asked] = Object.values(requestedSchema.properties);
  tell({ event: "form", names: asked.enum, text: message });
  const name = names.shift();
  return name ? { action: "accept", content: { answer: name } } : { action: "decline" };
}

/** What a step is: each asks the agent, and gives its answer. */
const steps = {
  initialize: start,
  new: ({ cwd }) => client.createSession(cwd),
  load: ({ session, cwd }) => client.loadSession(session, cwd),
  resume: ({ session, cwd }) => client.resumeSession(session, cwd),
  mode: ({ session, mode }) => client.setSessionMode(session, mode),
  prompt: ({ session, blocks }) => client.prompt(session, blocks, undefined, fill, permit),
  cancel: ({ session }) => client.cancel(session),
  answer: (step) => void ([kind, names] = [step.kind ?? kind, step.names ?? []]),
};

/** Do a step, and tell of its end. */
async function take(step) {
  try {
    tell({ event: "done", id: step.id, result: (await steps[step.do](step)) ?? {} });
  } catch (error) {
    tell({ event: "done", id: step.id, error: error.message });
  }
}

for await (const line of createInterface({ input: test })) void take(JSON.parse(line));
await client?.close();
test.end();
