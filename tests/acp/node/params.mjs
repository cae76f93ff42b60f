// Reads parameters as the official TypeScript library does. Usage: node params.mjs DIRECTORY, which has
// params.json: [[version, name of the request, parameters], ...]; writes what was read, or null, of each.

import { readFileSync } from "node:fs";
import { join } from "node:path";

const LIBRARY = "./node_modules/@agentclientprotocol/sdk/dist";
const schemas = {
  1: await import(`${LIBRARY}/v1/unstable/schema/zod.gen.js`),
  2: await import(`${LIBRARY}/v2/unstable/schema/zod.gen.js`),
};
const asked = JSON.parse(readFileSync(join(process.argv[2], "params.json"), "utf-8"));
const read = ([version, name, params]) => {
  const { success, data } = schemas[version][`z${name}`].safeParse(params);
  return success ? data : null;
};
process.stdout.write(JSON.stringify(asked.map(read)));
