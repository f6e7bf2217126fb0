// Records what clients send: stands between them and a server, and keeps the first bytes of each connection.
// Usage: node record.ts SERVER_PORT FILE WHAT COMMAND…; `PORT` in the command is the port to call. Writes FILE, which
// `recorded.test.ts` reads.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";

/** Of each connection, and of how many. */
const MOST_BYTES = 12 * 1_024;
const MOST_CONNECTIONS = 3;

/** A recording: what made it, and the bytes of each connection in base64. */
export interface Recording {
  readonly made: string;
  readonly connections: readonly string[];
}

const [port = "", file = "", made = "", ...command] = process.argv.slice(2);
const recorded: Buffer[][] = [];
const server = createServer((near) => {
  const chunks: Buffer[] = [];
  recorded.push(chunks);
  const far = connect(Number(port), "127.0.0.1");
  near.on("data", (chunk) => chunks.push(chunk)).on("error", () => undefined);
  near.pipe(far).on("error", () => near.destroy());
  far.pipe(near).on("close", () => far.destroy());
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const own = String((server.address() as AddressInfo).port);
const [program = "", ...words] = command.map((word) => word.replaceAll("PORT", own));
const client = spawn(program, words, { stdio: "inherit" });
await once(client, "exit");
const connections = recorded
  .slice(0, MOST_CONNECTIONS)
  .map((chunks) => Buffer.concat(chunks).subarray(0, MOST_BYTES).toString("base64"));
writeFileSync(file, `${JSON.stringify({ made, connections } satisfies Recording, undefined, 2)}\n`);
process.exit();
