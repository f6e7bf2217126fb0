// Several processes behind one address of HTTP: calls go to them, and probes are told what the parent knows.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { serverEnv } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { startProcesses } from "../../src/main/serving.ts";
import { makeStore } from "../../src/main/stores.ts";
import { clientsOf, createTag, until } from "../support.ts";
import { scrape } from "../telemetry/scrape.ts";
import { rawTo } from "./raw.ts";

const body = '{"tag":"orders"}';
const generate = `POST /idmint.v1.IdService/GenerateId HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const ready = "GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n";

test("calls are spread over the processes, and probes are answered for all of them", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-http-processes-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const flags = {
    "store-url": `sqlite:${path.join(folder, "idmint.db")}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    "limits-connections": "8",
    processes: "2",
  };
  const config = loadConfig({ env: serverEnv(), flags, defaults: {} });
  await makeStore({ ...config, processes: 1 });
  const server = await startProcesses(config);
  let isClosed = false;
  onTestFinished(() => (isClosed ? undefined : server.close()));
  const { httpAddress, grpcAddress } = server;
  await createTag(clientsOf(grpcAddress), "orders");
  const ids = new Set<string>();
  const callers = Array.from({ length: 8 }, () => rawTo(httpAddress));
  for (let calls = 1; calls <= 5; calls++) {
    for (const { socket } of callers) socket.write(generate);
    const answers = await Promise.all(callers.map(({ answers: its }) => its(calls)));
    for (const [answer] of answers.map((each) => each.slice(-1))) {
      expect(answer).toMatchObject({ status: 200 });
      ids.add((JSON.parse(answer?.body ?? "") as { id: string }).id);
    }
  }
  expect(ids.size).toBe(40);
  callers[0]?.socket.write(ready);
  const probed = (await callers[0]?.answers(6))?.at(-1);
  expect(JSON.parse(probed?.body ?? "")).toEqual({
    ready: true,
    state: "SERVING",
    processes: { total: 2, ready: 2 },
  });
  // All connections are in use, and probes are answered still; of nothing else.
  const reserved = rawTo(httpAddress);
  reserved.socket.write(ready);
  expect(await reserved.answers(1)).toMatchObject([{ status: 200 }]);
  const refused = rawTo(httpAddress);
  refused.socket.write(generate);
  expect(await refused.answers(1)).toMatchObject([{ status: 503 }]);
  for (const { socket } of callers) socket.destroy();
  // A machine that does much else may take its time to collect them.
  let series: Awaited<ReturnType<typeof scrape>> = new Map();
  await until(async () => {
    series = await scrape(httpAddress).catch(() => new Map<string, number>());
    return series.size > 0;
  }, 60_000);
  const calls = [1, 2].map((number) =>
    [...series].find(
      ([key]) => key.startsWith("idmint_calls_total") && key.includes(`process="${number}"`),
    ),
  );
  for (const [, value] of calls.map((each) => each ?? ["", 0])) expect(value).toBeGreaterThan(15);
  // A connection that is there hears that they stop.
  const watching = rawTo(httpAddress);
  watching.socket.write(ready);
  await watching.answers(1);
  const closed = server.close();
  isClosed = true;
  watching.socket.write(ready);
  const answers = await watching.answers(2);
  if (answers.length === 2) expect(answers[1]).toMatchObject({ status: 503 });
  await closed;
  await until(() => watching.isClosed());
});
