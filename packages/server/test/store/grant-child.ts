// A process that takes grants of one tag until it is killed, and writes each to standard output as it gets it.
import { writeSync } from "node:fs";
import { IdmintError } from "@idmint/core";
import { openStore, type StoreConfig } from "../../src/store/open-store.ts";

const [config = "", tag = "", count = "10"] = process.argv.slice(2);
const store = await openStore(JSON.parse(config) as StoreConfig);
let seenVersion = 0n;
writeSync(1, "open\n");
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
      writeSync(1, `granted ${grant.base} ${grant.count}\n`);
    } else if (grant?.outcome === "refused") {
      writeSync(1, `refused ${grant.reason}\n`);
    }
  } catch (error) {
    writeSync(1, `failed ${error instanceof IdmintError ? error.reason : String(error)}\n`);
  }
}
