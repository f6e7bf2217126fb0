// A process that raises the floors of tags, one by one and each with a note, until it is killed.
import { openStore, type StoreConfig } from "../../src/store/open-store.ts";

const [config = "", server = ""] = process.argv.slice(2);
const store = await openStore(JSON.parse(config) as StoreConfig);
process.stdout.write("open\n");

let made = 0;
async function raise(tag: string): Promise<never> {
  const who = {
    principal: "ops",
    proof: "token",
    peer: "10.0.0.7:1",
    method: "AdvanceTag",
    server,
  };
  for (;;) {
    // Each change after the one before, as an operator makes them.
    const [row] = await store.getTags([tag]);
    const by = { ...who, id: `${server}-${made++}` };
    const how = { maxRaise: 10n, expectedRevision: row?.revision };
    await store.advanceTag(tag, (row?.floor ?? 0n) + 1n, { ...how, by }).catch(() => undefined);
  }
}
await Promise.all(["a", "b", "c"].map(raise));
