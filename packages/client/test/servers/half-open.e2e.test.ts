import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { createIdClient, IdmintError } from "../../src/index.ts";
import { startFleet } from "../fake-fleet.ts";

function reasonOfError(error: unknown): string {
  return IdmintError.from(error).reason;
}

/** A proxy whose present connections can be made to swallow everything without closing. */
async function startProxy(target: string): Promise<{ address: string; swallow: () => void }> {
  const port = Number(target.split(":")[1]);
  const sockets = new Set<Socket>();
  const pairs = new Set<readonly [Socket, Socket]>();
  const proxy = createServer((from) => {
    const to = connect(port, "127.0.0.1");
    pairs.add([from, to]);
    for (const socket of [from, to]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
    }
    from.pipe(to).pipe(from);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const at = proxy.address();
  if (at === null || typeof at === "string") throw new Error("no port");
  return {
    address: `127.0.0.1:${at.port}`,
    swallow: () => {
      for (const [from, to] of pairs) {
        from.unpipe(to);
        to.unpipe(from);
        // Read and forgotten, as by a machine that lost its state behind a silent firewall.
        from.resume();
        to.resume();
      }
      pairs.clear();
    },
  };
}

test("a connection that died without a word is replaced, by keepalive, within 15 s", async () => {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  const proxy = await startProxy(servers[0]!.address);
  const client = createIdClient({ address: proxy.address, min: 10, max: 10, rpcDeadlineMs: 500 });
  onTestFinished(async () => {
    await client.close();
  });
  const tag = client.tag("orders");
  for (let i = 0; i < 5; i++) await tag.next();
  const { length } = await tag.take(3);
  expect(length).toBeGreaterThan(0);
  proxy.swallow();
  // The ids in memory go on; then calls are refused in time instead of hanging.
  const answers: string[] = [];
  while (answers.at(-1) !== "SEGMENT_NOT_READY" && answers.length < 50) {
    answers.push(await tag.next({ deadlineMs: 300 }).then(String, reasonOfError));
  }
  expect(answers.at(-1)).toBe("SEGMENT_NOT_READY");
  const start = performance.now();
  expect(await tag.next({ deadlineMs: 15_000 })).toBeGreaterThan(8n);
  expect(performance.now() - start).toBeLessThan(15_000);
});
