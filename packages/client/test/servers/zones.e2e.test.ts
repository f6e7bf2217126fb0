// The SDK and the servers that it learns of, real ones on real stores.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Order } from "@idmint/proto";
import { selfSigned } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import {
  createIdClient,
  type IdClient,
  type IdClientEvent,
  type IdClientOptions,
} from "../../src/index.ts";
import { RealFleet } from "../real-fleet.ts";

async function fleetOf(servers: number): Promise<RealFleet> {
  const fleet = await RealFleet.start(servers);
  onTestFinished(() => fleet[Symbol.asyncDispose]());
  return fleet;
}

function clientOf(options: IdClientOptions): { client: IdClient; events: IdClientEvent[] } {
  const events: IdClientEvent[] = [];
  const client = createIdClient({
    min: 5,
    max: 5,
    ...options,
    onEvent: (event) => events.push(event),
  });
  onTestFinished(() => client.close());
  return { client, events };
}

/** Ids of a tag, one by one, until a condition holds. */
async function idsUntil(client: IdClient, tag: string, holds: () => boolean): Promise<bigint[]> {
  const ids: bigint[] = [];
  const end = performance.now() + 60_000;
  while (!holds() && performance.now() < end) {
    for (let at = 0; at < 5; at++) ids.push(await client.tag(tag).next());
    await pause(20);
  }
  expect(holds()).toBe(true);
  return ids;
}

test("a client with one address learns the others, and uses that of its zone", async () => {
  const fleet = await fleetOf(0);
  const seed = await fleet.startServer(undefined, { IDMINT_NODE_ZONE: "a" });
  await fleet.startServer(undefined, { IDMINT_NODE_ZONE: "b" });
  await fleet.createTag("orders", { order: Order.PER_CLIENT });
  const { client, events } = clientOf({ address: seed, zone: "b" });
  const listed = (): IdClientEvent | undefined =>
    events.find((event) => event.type === "servers-listed" && event.servers === 2);
  const ids = await idsUntil(client, "orders", () => listed() !== undefined);
  expect(listed()).toMatchObject({ inZone: 1 });
  // A zone that nobody serves is told, and is no error.
  const lost = clientOf({ address: seed, zone: "nowhere" });
  await idsUntil(lost.client, "orders", () =>
    lost.events.some((event) => event.type === "servers-listed" && event.inZone === 0),
  );
  // A tag moves within five seconds of the list, and keeps its order.
  const movedAt = performance.now() + 6_000;
  ids.push(...(await idsUntil(client, "orders", () => performance.now() > movedAt)));
  // The one address that it was made with is gone, and nobody notices: no load goes there any more.
  await fleet.stop(seed);
  ids.push(...(await idsUntil(client, "orders", () => ids.length > 0)));
  for (let at = 0; at < 100; at++) ids.push(await client.tag("orders").next());
  expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => (a < b ? -1 : 1)));
  expect(events.filter((event) => event.type === "endpoint-failed")).toEqual([]);
});

test("learned servers are spoken to by TLS as those that were given, and one without it is not used", async () => {
  const fleet = await fleetOf(1);
  await fleet.createTag("orders");
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { cert, key } = selfSigned("ids.example");
  const files = { cert: path.join(folder, "cert.pem"), key: path.join(folder, "key.pem") };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);
  const tls = { IDMINT_TLS_CERT_FILE: files.cert, IDMINT_TLS_KEY_FILE: files.key };
  const seed = await fleet.startServer(undefined, { ...tls, IDMINT_NODE_ZONE: "a" });
  await fleet.startServer(undefined, { ...tls, IDMINT_NODE_ZONE: "b" });
  const { client, events } = clientOf({
    address: seed,
    zone: "b",
    tls: { ca: cert, serverName: "ids.example" },
  });
  const isListed = (): boolean =>
    events.some((event) => event.type === "servers-listed" && event.servers === 3);
  await idsUntil(client, "orders", isListed);
  const movedAt = performance.now() + 3_000;
  await idsUntil(client, "orders", () => performance.now() > movedAt);
  await fleet.stop(seed);
  const ids = await idsUntil(client, "orders", () => true);
  for (let at = 0; at < 100; at++) ids.push(await client.tag("orders").next());
  expect(new Set(ids).size).toBe(ids.length);
  expect(events.filter((event) => event.type === "endpoint-failed")).toEqual([]);
});

test("an address that leads to a server of another store is never used", async () => {
  const [ours, theirs] = [await fleetOf(0), await fleetOf(0)];
  const foreign = await theirs.startServer();
  const seed = await ours.startServer(undefined, { IDMINT_NODE_ZONE: "a" });
  // Its row says somebody else's address.
  await ours.startServer(undefined, {
    IDMINT_NODE_ZONE: "b",
    IDMINT_NODE_ADVERTISE: foreign,
  });
  await ours.createTag("orders", { start: 1_000_000n });
  await theirs.createTag("orders");
  const { client, events } = clientOf({ address: seed, zone: "b" });
  const isListed = (): boolean =>
    events.some((event) => event.type === "servers-listed" && event.servers === 2);
  const ids = await idsUntil(client, "orders", isListed);
  const end = performance.now() + 7_000;
  ids.push(...(await idsUntil(client, "orders", () => performance.now() > end)));
  for (const id of ids) expect(id).toBeGreaterThanOrEqual(1_000_000n);
  expect(new Set(ids).size).toBe(ids.length);
  // It was the first choice of this client, had it been used.
  expect(events).toContainEqual(expect.objectContaining({ type: "servers-listed", inZone: 1 }));
});

/** An address behind which a test puts one server after the other. */
async function openDoor(): Promise<{ address: string; turnTo: (target: string) => void }> {
  const sockets = new Set<Socket>();
  let to = "";
  const server = createServer((near) => {
    const far = connect(Number(to.split(":")[1]), "127.0.0.1");
    for (const [one, other] of [[near, far] as const, [far, near] as const]) {
      sockets.add(one);
      one.on("error", () => undefined);
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const hangUp = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    hangUp();
    server.close();
  });
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    turnTo: (target) => {
      to = target;
      hangUp();
    },
  };
}

test("an address that somebody else has now is found out by its first answer", async () => {
  const [ours, theirs] = [await fleetOf(0), await fleetOf(0)];
  const door = await openDoor();
  const seed = await ours.startServer(undefined, { IDMINT_NODE_ZONE: "a" });
  const near = { IDMINT_NODE_ZONE: "b", IDMINT_NODE_ADVERTISE: door.address };
  door.turnTo(await ours.startServer(undefined, near));
  const foreign = await theirs.startServer();
  await ours.createTag("orders", { start: 1_000_000n });
  await theirs.createTag("orders");
  const { client, events } = clientOf({ address: seed, zone: "b" });
  const isListed = (): boolean =>
    events.some((event) => event.type === "servers-listed" && event.servers === 2);
  const ids = await idsUntil(client, "orders", isListed);
  const movedAt = performance.now() + 7_000;
  ids.push(...(await idsUntil(client, "orders", () => performance.now() > movedAt)));
  door.turnTo(foreign);
  const isFoundOut = (): boolean =>
    events.some(
      (event) =>
        event.type === "endpoint-failed" && event.error.message.includes("is no server that"),
    );
  ids.push(...(await idsUntil(client, "orders", isFoundOut)));
  for (let at = 0; at < 200; at++) ids.push(await client.tag("orders").next());
  for (const id of ids) expect(id).toBeGreaterThanOrEqual(1_000_000n);
  expect(new Set(ids).size).toBe(ids.length);
  // It has handed out ids all the same: somebody else's gap.
  expect(await theirs.floorOf("orders")).toBeGreaterThan(0n);
});
