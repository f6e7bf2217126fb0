// What connections of HTTP may take, and that probes are answered whatever the others do.
import { expect, test } from "vitest";
import { createTag, holdBack, startTest, until } from "../support.ts";
import { type Raw, rawTo } from "./raw.ts";

const call = (body: string, more = ""): string =>
  `POST /idmint.v1.IdService/GenerateId HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;
const probe = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

test("above the limit of connections only probes are answered, and the oldest gives way", async () => {
  const it = await startTest({ flags: { "limits-connections": "3" } });
  await createTag(it, "a");
  const { httpAddress } = it.server;
  const usual = [rawTo(httpAddress), rawTo(httpAddress), rawTo(httpAddress)];
  for (const { socket } of usual) socket.write(call('{"tag":"a"}'));
  for (const { answers } of usual) expect(await answers(1)).toMatchObject([{ status: 200 }]);
  const refused = rawTo(httpAddress);
  refused.socket.write(call('{"tag":"a"}'));
  const [refusal] = await refused.answers(1);
  expect(refusal).toMatchObject({ status: 503 });
  expect(JSON.parse(refusal?.body ?? "")).toMatchObject({ code: "unavailable" });
  expect(refusal?.headers.toLowerCase()).toContain("connection: close");
  await until(() => refused.isClosed());
  // Silent ones fill what is reserved, and still a probe comes in.
  const silent = Array.from({ length: 100 }, () => rawTo(httpAddress));
  await until(() => silent.filter(({ isClosed }) => isClosed()).length >= 36);
  for (let probes = 0; probes < 3; probes++) {
    const each = rawTo(httpAddress);
    each.socket.write(probe);
    expect(await each.answers(1)).toMatchObject([{ status: 200 }]);
  }
  // Whoever was there goes on.
  usual[0]?.socket.write(call('{"tag":"a"}'));
  expect(await usual[0]?.answers(2)).toHaveLength(2);
  expect(it.events.some(({ type }) => type === "connection-refused")).toBe(true);
  // A connection that ends makes room for another.
  usual[1]?.socket.destroy();
  await until(async () => {
    const next = rawTo(httpAddress);
    next.socket.write(call('{"tag":"a"}'));
    return (await next.answers(1))[0]?.status === 200;
  });
});

test("a newcomer of another address takes the place of the newest of who holds most", async () => {
  const it = await startTest({ flags: { "limits-connections": "3" } });
  await createTag(it, "a");
  const { httpAddress } = it.server;
  const greedy: Raw[] = [];
  for (let place = 0; place < 3; place++) {
    const each = rawTo(httpAddress);
    greedy.push(each);
    each.socket.write(probe);
    await each.answers(1);
  }
  const newcomer = rawTo(httpAddress, "127.0.0.2");
  newcomer.socket.write(call('{"tag":"a"}'));
  expect(await newcomer.answers(1)).toMatchObject([{ status: 200 }]);
  expect(newcomer.isClosed()).toBe(false);
  await until(() => greedy[2]?.isClosed() === true);
  expect(greedy.map(({ isClosed }) => isClosed())).toEqual([false, false, true]);
  const told = it.events.filter(({ type }) => type === "connection-refused");
  expect(told).toMatchObject([
    { why: "3 connections are open already, the most of them from its address" },
  ]);
});

test("of one connection only some requests wait for their answers", async () => {
  const it = await startTest();
  await createTag(it, "a");
  const release = holdBack(it.store, "grant");
  const raw = rawTo(it.server.httpAddress);
  raw.socket.write(call('{"tag":"a"}').repeat(40));
  const { counters } = it.server;
  // One made the tag.
  await until(() => counters.calls >= 33);
  release();
  const answers = await raw.answers(33);
  expect(answers.slice(0, 32).every(({ status }) => status === 200)).toBe(true);
  expect(answers[32]).toMatchObject({ status: 429 });
  await until(() => raw.isClosed());
  expect(counters.calls).toBe(33);
});

test("bodies and headers that are too large are refused with a reason", async () => {
  const it = await startTest();
  const large = "x".repeat(65 * 1_024);
  const path = "POST /idmint.v1.IdService/GenerateId HTTP/1.1\r\nhost: localhost\r\n";
  const json = "content-type: application/json\r\n";
  const chunked = `${path}${json}transfer-encoding: chunked\r\n\r\n`;
  const chunk = `${large.length.toString(16)}\r\n${large}\r\n`;
  for (const [request, status, isClosed] of [
    [call(large), 413, false],
    [`${path}${json}transfer-encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`, 413, true],
    [`${path}${json}content-length: 99999999\r\n\r\nx`, 413, true],
    [`GET /healthz HTTP/1.1\r\nhost: x\r\nlong: ${"x".repeat(17_000)}\r\n\r\n`, 431, true],
    ["BREW /coffee HTTP/1.1\r\n\r\n", 400, true],
    // What is wrong in the middle of a body, too.
    [`${chunked}1;${"x".repeat(17_000)}\r\n{\r\n0\r\n\r\n`, 413, true],
    [`${chunked}zz\r\n`, 400, true],
    [`${chunked}1\r\n{\r\n0\r\nlong: ${"x".repeat(17_000)}\r\n\r\n`, 431, true],
    [`${path}${json}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`, 400, true],
    [`${path}${json}content-length: 2\r\ncontent-length: 3\r\n\r\n{}x`, 400, true],
  ] as const) {
    const raw = rawTo(it.server.httpAddress);
    raw.socket.write(request);
    const [answer] = await raw.answers(1);
    expect(answer?.status, request.slice(0, 200)).toBe(status);
    expect(JSON.parse(answer?.body ?? "")).toHaveProperty("message");
    if (isClosed) await until(() => raw.isClosed());
    else {
      // The connection is as good as before.
      raw.socket.write(probe);
      expect((await raw.answers(2))[1]).toMatchObject({ status: 200 });
    }
  }
});

test("nobody is told to send a body that is too large", async () => {
  const it = await startTest();
  await createTag(it, "a");
  const expecting = "expect: 100-continue\r\n";
  const good = rawTo(it.server.httpAddress);
  good.socket.write(call('{"tag":"a"}', expecting).replace('{"tag":"a"}', ""));
  await until(() => good.received().startsWith("HTTP/1.1 100 Continue\r\n\r\n"));
  good.socket.write('{"tag":"a"}');
  expect(await good.answers(1)).toMatchObject([{ status: 200 }]);
  const bad = rawTo(it.server.httpAddress);
  bad.socket.write(call("", expecting).replace("content-length: 0", "content-length: 70000"));
  expect(await bad.answers(1)).toMatchObject([{ status: 413 }]);
});

test("a stranger's name and a page of another origin reach nothing but health", async () => {
  const it = await startTest();
  await createTag(it, "a");
  for (const [headers, status] of [
    ["host: evil.example", 421],
    ["host: localhost\r\norigin: http://evil.example", 403],
    ["host: localhost\r\norigin: http://localhost:3000\r\nsec-fetch-site: same-site", 403],
    ["host: localhost\r\nhost: evil.example", 421],
    ["x: y", 421],
  ] as const) {
    const raw = rawTo(it.server.httpAddress);
    const answered = async (request: string, count: number): Promise<number | undefined> => {
      raw.socket.write(request);
      return (await raw.answers(count))[count - 1]?.status;
    };
    const body = '{"tag":"a"}';
    const post = call(body).replace("host: localhost", headers);
    expect(await answered(post, 1), headers).toBe(status);
    expect(await answered(`GET /metrics HTTP/1.1\r\n${headers}\r\n\r\n`, 2), headers).toBe(status);
    expect(await answered(`GET /readyz HTTP/1.1\r\n${headers}\r\n\r\n`, 3), headers).toBe(200);
    expect(raw.received().toLowerCase()).not.toContain("access-control-");
  }
  expect(it.server.counters.calls).toBe(1);
});

test("a target in the absolute form is taken, and the host in it counts", async () => {
  // Without the console, to whose pages "/" leads where it is built.
  const it = await startTest({ flags: { "http-console": "off" } });
  await createTag(it, "a");
  const body = '{"tag":"a"}';
  const posted = (target: string, host: string): string =>
    call(body).replace("POST /", `POST ${target}/`).replace("host: localhost", host);
  for (const [request, status] of [
    [posted("http://localhost", "host: localhost"), 200],
    [posted("HTTPS://LOCALHOST:1", "host: evil.example"), 200],
    [posted("http://localhost", "host: evil.example\r\norigin: http://localhost"), 200],
    [posted("http://localhost", "x: y"), 200],
    [posted("http://evil.example", "host: localhost"), 421],
    [posted("http://evil.example@localhost", "host: localhost"), 421],
    [posted("http://", "host: localhost"), 421],
    [posted("http://localhost", "host: evil.example\r\norigin: http://evil.example"), 403],
    ["GET http://evil.example/healthz?x HTTP/1.1\r\nhost: x\r\n\r\n", 200],
    ["GET http://localhost HTTP/1.1\r\nhost: x\r\n\r\n", 404],
    ["GET http://localhost?/healthz HTTP/1.1\r\nhost: x\r\n\r\n", 404],
    ["GET ftp://localhost/healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", 404],
  ] as const) {
    const raw = rawTo(it.server.httpAddress);
    raw.socket.write(request);
    const [answer] = await raw.answers(1);
    expect([request, answer?.status]).toEqual([request, status]);
  }
});

test("who is slow to send is told so, once, and not waited for", { timeout: 60_000 }, async () => {
  const it = await startTest();
  await createTag(it, "a");
  const whole = call("{}");
  const body = "POST /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{";
  const slow = (
    [
      ["", [408]],
      ["GET /heal", [408]],
      [whole.slice(0, -20), [408]],
      [whole.slice(0, -1), [408]],
      [`${call('{"tag":"a"}')}${whole.slice(0, -2)}`, [200, 408]],
      [whole.replace("content-length: 2", "transfer-encoding: chunked").slice(0, -2), [408]],
      [call("", "expect: 100-continue\r\n").replace("length: 0", "length: 9"), [408]],
      // What was answered before its body came is not answered again.
      [body, [405]],
    ] as const
  ).map(([begun, statuses]) => {
    const raw = rawTo(it.server.httpAddress);
    raw.socket.write(begun);
    return { raw, begun, statuses };
  });
  await until(() => slow.every(({ raw }) => raw.isClosed()), 40_000);
  for (const { raw, begun, statuses } of slow) {
    expect([begun, raw.answersFrom(0).map(({ status }) => status)]).toEqual([begun, statuses]);
  }
});

test("a server that stops answers what it has begun, and closes", async () => {
  const it = await startTest();
  await createTag(it, "a");
  const release = holdBack(it.store, "grant");
  const [busy, idle] = [rawTo(it.server.httpAddress), rawTo(it.server.httpAddress)];
  idle.socket.write(probe);
  await idle.answers(1);
  const { counters } = it.server;
  const { calls } = counters;
  busy.socket.write(call('{"tag":"a"}'));
  await until(() => counters.calls > calls);
  const closed = it.server.close();
  idle.socket.write("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const [, notReady] = await idle.answers(2);
  expect(notReady).toMatchObject({ status: 503 });
  expect(notReady?.headers.toLowerCase()).toContain("connection: close");
  release();
  const [answer] = await busy.answers(1);
  expect(answer).toMatchObject({ status: 200 });
  await closed;
  await until(() => busy.isClosed() && idle.isClosed());
});
