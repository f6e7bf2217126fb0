// The commands about ticket databases, on databases of a real PostgreSQL.
import { initialSlots } from "@idmint/core/server";
import { GetNodeStatusResponse, StoreState } from "@idmint/proto";
import { openTicketDatabases, type PostgresTicketDatabase } from "@idmint/server";
import { createTestDatabase } from "@idmint/testkit/postgres";
import { expect, onTestFinished, test } from "vitest";
import { idmint, playServer, type CommandResult } from "../../support.ts";

const UNSAFE = "fsync,full_page_writes";
const NOWHERE = "postgres://postgres@127.0.0.1:1/nowhere";

interface Scene {
  readonly urls: Readonly<Record<string, string>>;
  /** Runs a command of `idmint ticket` with these databases. */
  readonly run: (names: readonly string[], ...args: readonly string[]) => Promise<CommandResult>;
}

/** Three databases that were migrated; a tag of six slots on the first two. */
async function sceneOf(): Promise<Scene> {
  const urls: Record<string, string> = { nowhere: NOWHERE };
  for (const name of ["a", "b", "c"]) {
    const database = await createTestDatabase();
    onTestFinished(() => database.close());
    urls[name] = database.url;
  }
  const run: Scene["run"] = (names, ...args) => {
    const list = names.map((name) => `${name}=${urls[name]}`).join(",");
    const env = { IDMINT_TICKET_URLS: list, IDMINT_ALLOW_UNSAFE_STORE: UNSAFE };
    return idmint(["ticket", ...args], { env });
  };
  const migrated = await run(["a", "b", "c"], "migrate");
  expect([migrated.exitCode, migrated.err]).toEqual([0, ""]);
  const configs = ["a", "b"].map((name) => {
    const allowUnsafe = UNSAFE.split(",");
    return { backend: "postgres", name, url: urls[name] ?? "", allowUnsafe } as const;
  });
  const databases = await openTicketDatabases(configs);
  const own = initialSlots(6, 2);
  for (const [at, database] of databases.entries()) {
    const slots = { slotsId: "orders.1", slots: 6, above: 0n };
    await database.make({ ...slots, own: own[at] ?? [] });
    await database.close();
  }
  return { urls, run };
}

/** Databases of a scene, opened; they close with the test. */
async function openedOf(
  urls: Readonly<Record<string, string>>,
  names: readonly string[],
): Promise<readonly PostgresTicketDatabase[]> {
  const allowUnsafe = UNSAFE.split(",");
  const databases = await openTicketDatabases(
    names.map((name) => ({ backend: "postgres", name, url: urls[name] ?? "", allowUnsafe })),
  );
  onTestFinished(async () => {
    for (const database of databases) await database.close();
  });
  return databases;
}

function json({ out }: CommandResult): Record<string, unknown> {
  return JSON.parse(out) as Record<string, unknown>;
}

test("a third database gets its share, and gives it back", async () => {
  const { run } = await sceneOf();
  const all = ["a", "b", "c"];
  const again = await run(all, "migrate", "--dry-run");
  expect(again.out).toBe(all.map((name) => `${name}: schema 1 is up to date\n`).join(""));
  const before = await run(all, "status");
  expect([before.exitCode, before.err]).toEqual([0, ""]);
  expect(before.out).toMatch(/^orders +3 +3 +0 +0 +0 +0 +0 +0$/m);
  const planned = await run(all, "plan", "--to", "a,b,c");
  expect(planned.out).toBe(
    "orders: 2 of 6 slots move\n  move  slot 4  a  →  c\n  move  slot 5  b  →  c\n",
  );
  const applied = await run(all, "apply", "--to", "a,b,c");
  expect([applied.exitCode, applied.out]).toEqual([0, "moved 2 slots\n"]);
  expect(json(await run(all, "status", "--json"))["databases"]).toEqual(
    all.map((name) => ({ name, slots: 2, illness: "" })),
  );
  expect((await run(all, "plan", "--to", "a,b,c")).out).toBe("orders: nothing to move\n");
  expect(json(await run(all, "apply", "--to", "a,b", "--json"))).toEqual({
    moved: 2,
    waiting: 0,
    lost: 0,
    away: [],
  });
  expect((await run(all, "status")).out).toMatch(/^orders +3 +3 +0 /m);
});

test("slots of a database that is away wait, and nothing is given to it", async () => {
  const { urls, run } = await sceneOf();
  const b = urls["b"];
  Object.assign(urls, { b: NOWHERE });
  const status = await run(["a", "b", "c"], "status");
  expect(status.exitCode).toBe(5);
  expect(status.out).toMatch(/^orders +3 +0 +0 +0 +3 /m);
  const to = await run(["a", "b", "c"], "apply", "--to", "a,b,c");
  expect([to.exitCode, to.out]).toEqual([4, ""]);
  const from = await run(["a", "b", "c"], "apply", "--to", "a,c");
  expect([from.exitCode, from.out]).toEqual([4, "moved 1 slots\n"]);
  expect(from.err).toContain("3 slots wait for databases that did not answer: b");
  Object.assign(urls, { b });
  expect((await run(["a", "b", "c"], "apply", "--to", "a,c")).exitCode).toBe(0);
  expect((await run(["a", "b", "c"], "status")).out).toMatch(/^orders +3 +0 +3 /m);
});

test("slots of a database that was replaced by an empty one are lost, and given up for the move to end", async () => {
  const { urls, run } = await sceneOf();
  const all = ["a", "b", "c"];
  // Slot 1 is on its way to the database that is lost, and ids were taken of another one.
  const [a] = await openedOf(urls, ["a"]);
  const { databaseId } = await (await openedOf(urls, ["b"]))[0]!.list("orders.1");
  await a!.freeze({ slotsId: "orders.1", slot: 0, epoch: 1n, to: databaseId });
  const requests = [{ slot: 2, epoch: 1n, seenLastId: -4n, count: 5 }];
  await a!.grant({ slotsId: "orders.1", ceiling: 1_000_000n, requests });
  const old = urls["b"];
  const empty = await createTestDatabase();
  onTestFinished(() => empty.close());
  Object.assign(urls, { b: empty.url });
  expect((await run(["b"], "migrate")).exitCode).toBe(0);
  for (let round = 0; round < 2; round++) {
    const ran = await run(all, "apply", "--to", "a,c", "--json");
    expect(ran.exitCode).toBe(5);
    expect(ran.err).toContain("4 slots are lost: no database has them, and all answered");
    expect(JSON.parse(ran.out)).toMatchObject({ waiting: 0, lost: 4, away: [] });
  }
  const planned = await run(all, "plan", "--to", "a,c");
  expect(planned.out).toContain(
    "4 of 6 slots are lost, no database has them: a database was replaced",
  );
  expect(planned.out).toContain("idmint ticket forget orders");
  expect((await run(all, "status")).out).toMatch(/^orders +1 +0 +1 +0 +0 +4 +0 +\d+$/m);
  // While one is away, nobody knows what it has.
  Object.assign(urls, { c: NOWHERE, was: urls["c"] });
  expect((await run(all, "forget", "orders", "--yes")).exitCode).toBe(4);
  expect((await run(all, "status")).out).toMatch(/^orders +1 +0 +0 +0 +5 +0 +0 +\d+$/m);
  Object.assign(urls, { c: urls["was"] });
  const unasked = await run(all, "forget", "orders");
  expect([unasked.exitCode, unasked.err]).toEqual([
    2,
    expect.stringContaining("gives up 4 of 6 slots of orders for good"),
  ]);
  expect((await run(all, "forget", "nothing", "--yes")).err).toContain("TAG has no slots");
  expect((await run(all, "forget", "orders", "--yes")).out).toBe(
    "orders: 4 of 6 slots are given up\n",
  );
  expect((await run(all, "forget", "orders")).out).toBe("orders: 0 of 6 slots are given up\n");
  const applied = await run(all, "apply", "--to", "a,b,c", "--json");
  expect([applied.exitCode, applied.err]).toEqual([0, ""]);
  expect((await run(all, "status")).out).toMatch(/^orders +1 +0 +1 +0 +0 +0 +4 +\d+$/m);
  // The lost one comes back after all: what was given up stays so.
  Object.assign(urls, { b: old });
  expect((await run(all, "plan", "--to", "a,b")).err).toContain("ticket database b went back");
  expect((await run(all, "accept", "b", "--gap", "10", "--yes")).exitCode).toBe(0);
  expect((await run(all, "status")).out).toMatch(/^orders +1 +0 +1 +0 +0 +0 +4 +\d+$/m);
});

test("a tag that was made half-way only does not keep a move from ending", async () => {
  const { urls, run } = await sceneOf();
  const all = ["a", "b", "c"];
  const [a] = await openedOf(urls, ["a"]);
  await a!.make({ slotsId: "half.1", slots: 6, own: [0, 2, 4], above: 99n });
  const applied = await run(all, "apply", "--to", "a,b,c");
  expect(applied.exitCode).toBe(5);
  expect(applied.out).toContain(
    "3 of 6 slots are lost, no database has them: nothing was ever issued",
  );
  expect((await run(all, "forget", "half", "--yes")).exitCode).toBe(0);
  expect((await run(all, "apply", "--to", "a,b,c")).exitCode).toBe(0);
});

test("one database under two names is not migrated", async () => {
  const { urls, run } = await sceneOf();
  const again = `${urls["a"]}${urls["a"]?.includes("?") === true ? "&" : "?"}application_name=other`;
  Object.assign(urls, { d: again });
  for (const args of [["migrate"], ["migrate", "--dry-run"]]) {
    const ran = await run(["a", "b", "d"], ...args);
    expect([ran.exitCode, ran.out]).toEqual([2, ""]);
    expect(ran.err).toContain("must name each database once: a and d are the same one");
  }
});

test("a database is accepted only by its name, with a gap, while all others answer", async () => {
  const { urls, run } = await sceneOf();
  const all = ["a", "b", "c"];
  expect((await run(all, "accept", "a")).exitCode).toBe(2);
  expect((await run(all, "accept", "d", "--gap", "5", "--yes")).err).toContain(
    "must be one of ticket.urls",
  );
  const accepted = await run(all, "accept", "a", "--gap", "500", "--yes");
  expect(accepted.out).toBe("accepted: 3 slots of a continue 500 ids above the highest known id\n");
  expect((await run(all, "status")).out).toMatch(/^orders +3 +3 +0 +0 +0 +0 +0 +500$/m);
  Object.assign(urls, { c: NOWHERE });
  const refused = await run(all, "accept", "a", "--gap", "5", "--yes");
  expect([refused.exitCode, refused.out]).toEqual([4, ""]);
  expect(refused.err).toContain("ticket database c did not answer");
});

test("without databases, or with a name that is none of them, nothing is done", async () => {
  const { run } = await sceneOf();
  const none = await idmint(["ticket", "status"]);
  expect([none.exitCode, none.out]).toEqual([2, ""]);
  expect(none.err).toContain("ticket.urls");
  const wrong = await run(["a", "b"], "plan", "--to", "a,x");
  expect([wrong.exitCode, wrong.out]).toEqual([2, ""]);
  expect(wrong.err).toContain("x is not one of ticket.urls");
});

test("a database that a server takes no ids from is not ok, whatever the database says", async () => {
  const { run } = await sceneOf();
  const reason = "STORE_EPOCH_CHANGED: slot 3 of orders.1 is at 40, after 90 was seen";
  const { address, stop } = await playServer({
    getNodeStatus: () =>
      GetNodeStatusResponse.fromPartial({
        ticketDatabases: [
          { name: "a", state: StoreState.GRANTING, reason: "" },
          { name: "b", state: StoreState.FENCED, reason },
        ],
      }),
  });
  onTestFinished(stop);
  const ran = await run(["a", "b"], "status", "--address", address);
  expect(ran.exitCode).toBe(5);
  expect(ran.out).toMatch(/^a +3 +ok$/m);
  expect(ran.out).toContain(`the server at ${address} takes no ids from it: ${reason}`);
  const nobody = await run(["a", "b"], "status", "--address", "127.0.0.1:1");
  expect([nobody.exitCode, nobody.out]).toEqual([4, ""]);
});
