// @idmint/client/fastify against Fastify and a server.
import { request } from "node:http";
import { text } from "node:stream/consumers";
import fastify, { type FastifyInstance } from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { idmint } from "../../src/adapters/fastify.ts";
import { createIdClient, type IdClient, type IdClientEvent } from "../../src/index.ts";
import { createTestIdClient } from "../../src/testing.ts";
import { RealFleet } from "../real-fleet.ts";
import { reasonOf, refusal, until } from "../support.ts";

async function fleetOf(...tags: readonly string[]): Promise<RealFleet> {
  const fleet = await RealFleet.start(1);
  onTestFinished(() => fleet[Symbol.asyncDispose]());
  for (const tag of tags) await fleet.createTag(tag);
  return fleet;
}

async function appOf(client: IdClient, tags: readonly string[]): Promise<FastifyInstance> {
  const app = fastify();
  onTestFinished(() => app.close());
  await app.register(idmint, { client, tags });
  return app;
}

/** On a connection of its own: one that is kept alive would hold up the server's end. */
function post(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method: "POST", agent: false }, (answer) => {
      text(answer).then(resolve, reject);
    });
    call.on("error", reject);
    call.end();
  });
}

test("routes of any plugin mint ids, and the tags are warm before the first request", async () => {
  const fleet = await fleetOf("orders");
  const app = await appOf(createIdClient({ addresses: fleet.addresses }), ["orders"]);
  await app.register(async (inner) => {
    inner.post("/orders", async () => ({ id: String(inner.ids.tag("orders").nextSync()) }));
  });
  await app.ready();
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => app.inject({ method: "POST", url: "/orders" })),
  );
  const ids = answers.map((answer) => answer.json<{ id: string }>().id);
  expect(new Set(ids).size).toBe(20);
  expect(ids).toContain("1");
});

test("the application does not start without its tags", async () => {
  const fleet = await fleetOf();
  const app = await appOf(createIdClient({ addresses: fleet.addresses }), ["nobody"]);
  const error = await refusal(Promise.resolve(app.ready()));
  expect([error.reason, error.metadata["tag"]]).toEqual(["TAG_NOT_FOUND", "nobody"]);
});

test("a request that runs while the application closes still gets its id; then all that is unused is given back", async () => {
  const fleet = await fleetOf("orders");
  const events: IdClientEvent[] = [];
  const client = createIdClient({
    addresses: fleet.addresses,
    onEvent: (event) => events.push(event),
  });
  const app = await appOf(client, ["orders"]);
  const reached = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  app.post("/orders", async () => {
    reached.resolve();
    await goOn.promise;
    return { id: await app.ids.tag("orders").nextString() };
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const answer = post(`${url}/orders`);
  await reached.promise;
  const closed = app.close();
  // From now on the server waits for this request alone.
  await until(() => !app.server.listening);
  goOn.resolve();
  expect(await answer).toBe('{"id":"1"}');
  await closed;
  expect(events.filter(({ type }) => type === "released")).toHaveLength(1);
  expect(await reasonOf(client.tag("orders").next())).toBe("CLIENT_CLOSED");
});

test("readiness tells each tag, and never rejects", async () => {
  const client = createTestIdClient();
  client.tag("strict").setKind("sequence");
  const app = await appOf(client, ["orders", "strict"]);
  await app.ready();
  const tags = { orders: "in memory", strict: "minted by servers" };
  expect(await app.idsReady()).toEqual({ isReady: true, tags });
  client.tag("orders").failWith("TAG_PAUSED");
  expect(await app.idsReady()).toEqual({ isReady: false, tags: { ...tags, orders: "TAG_PAUSED" } });
  client.tag("orders").recover();
  expect((await app.idsReady()).isReady).toBe(true);
});

test("a tag in memory is ready while its server is away, and a cold one is not", async () => {
  const fleet = await fleetOf("orders", "lines");
  const client = createIdClient({ addresses: fleet.addresses, deadlineMs: 1_000 });
  const app = await appOf(client, ["orders"]);
  await app.ready();
  await fleet.stop(fleet.addresses[0] ?? "");
  expect(await app.idsReady()).toEqual({ isReady: true, tags: { orders: "in memory" } });
  const other = fastify();
  onTestFinished(() => other.close());
  await other.register(idmint, { client, tags: ["lines"] });
  const error = await refusal(Promise.resolve(other.ready()));
  expect(error.retryable).toBe(true);
});

test("Fastify itself refuses a version that the plugin was not made for", () => {
  const meta: unknown = Reflect.get(idmint, Symbol.for("plugin-meta"));
  expect(meta).toEqual({ name: "@idmint/client", fastify: "5.x" });
});
