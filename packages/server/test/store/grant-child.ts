// A process that takes grants of one tag until it is killed, and writes each to standard output as it gets it.
import { writeSync } from "node:fs";
import { IdmintError } from "@idmint/core";
import { openStore, type StoreConfig } from "../../src/store/open-store.ts";

const [config = "", tag = "", count = "10"] = process.argv.slice(2);
const store = await opened();
let seenVersion = 0n;
tell("open");

/** On a busy machine the store's thread may take longer to start than it is waited for; the test ends this process. */
async function opened(): ReturnType<typeof openStore> {
  for (;;) {
    try {
      return await openStore(JSON.parse(config) as StoreConfig);
    } catch (error) {
      if (!(error instanceof IdmintError) || error.code !== "UNAVAILABLE") throw error;
    }
  }
}

/** Waits for a reader that is behind; the pipe does not. */
function tell(line: string): void {
  for (let rest = Buffer.from(`${line}\n`); rest.length > 0;) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if ((error as { code?: string }).code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

for (;;) {
  try {
    const wish = {
      tag,
      kind: "segment" as const,
      count: Number(count),
      minCount: 1,
      after: 0n,
      seenVersion,
    };
    const [grant] = await store.grant([wish]);
    if (grant?.outcome === "granted") {
      seenVersion = grant.version;
      tell(`granted ${grant.base} ${grant.count}`);
    } else if (grant?.outcome === "refused") {
      tell(`refused ${grant.reason}`);
    }
  } catch (error) {
    tell(`failed ${error instanceof IdmintError ? error.reason : String(error)}`);
  }
}
