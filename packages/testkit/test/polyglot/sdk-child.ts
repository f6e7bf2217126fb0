// A process of callers by the SDK, which does what those of packages/testkit/polyglot do:
// node -C idmint-source sdk-child.ts '<PolyglotLoad as JSON>'.
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createIdClient, IdmintError } from "@idmint/client";
import { Recorder } from "../../src/fleet/record.ts";
import type { PolyglotLoad } from "../../src/polyglot/crew.ts";

const { address, folder, name, count, block } = JSON.parse(process.argv[2] ?? "{}") as PolyglotLoad;
const client = createIdClient({ address, min: block, max: block, worker: { instance: name } });
const part = count / 10;
const refusals: Record<string, number> = {};
const stopped = new AbortController();
process.once("SIGTERM", () => stopped.abort());

function refused(thrown: unknown): void {
  const { reason } = IdmintError.from(thrown);
  if (refusals[reason] === undefined) console.log(`refused ${reason}`);
  refusals[reason] = (refusals[reason] ?? 0) + 1;
}

/** Some streams of one tag, each of which mints so many ids at least. */
async function run(tag: string, streams: number, least: number): Promise<void> {
  const recorder = new Recorder(path.join(folder, `${name}.${tag}.ids`));
  const source = client.tag(tag);
  const work = async (stream: number): Promise<void> => {
    for (let minted = 0; !stopped.signal.aborted || minted < least;) {
      try {
        // Each stream takes the next ids when it has the last ones.
        recorder.id(stream, await source.next());
        minted++;
      } catch (thrown) {
        refused(thrown);
        await pause(100);
      }
      if (minted >= least) await pause(10 * streams);
    }
  };
  await Promise.all(Array.from({ length: streams }, (_, stream) => work(stream)));
}

await client.tag("unknown").next().catch(refused);
const runs = [
  run("accounts", 2, part * 2),
  run("ledger", 2, part),
  run("clicks", 2, part),
  // Calls that come together share a round trip.
  run("invoices", 20, part / 10),
  run("streamed", 1, part / 10),
];
console.log("started");
await Promise.all(runs);
await client.close();
console.log(`report ${JSON.stringify({ refusals })}`);
