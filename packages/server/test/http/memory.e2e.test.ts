// What strangers begin and do not end takes a bounded part of the memory, and nobody else notices.
import { expect, test } from "vitest";
import { createTag, startTest, until } from "../support.ts";
import { type Raw, rawTo } from "./raw.ts";

const STRANGER = "127.0.0.2";
const HELD_OF_ALL = 16 * 1_024 * 1_024;
const head = (length: number): string =>
  `POST /idmint.v1.IdService/GenerateId HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;

/** Statuses of the strangers who were answered. */
function statusesOf(strangers: readonly Raw[]): ReadonlySet<number | undefined> {
  return new Set(
    strangers.flatMap(({ answersFrom }) => answersFrom(0).map(({ status }) => status)),
  );
}

test("of bodies that do not end those are refused that take the most, of who takes the most", async () => {
  const it = await startTest();
  await createTag(it, "a");
  const { httpAddress } = it.server;
  const body = `{"tag":"a"}${" ".repeat(30_000)}`;
  const slow = rawTo(httpAddress);
  slow.socket.write(head(body.length) + body.slice(0, -1));
  const [count, bytes] = [330, 60_000];
  const strangers = Array.from({ length: count }, () => {
    const raw = rawTo(httpAddress, STRANGER);
    raw.socket.write(head(bytes + 1) + " ".repeat(bytes));
    return raw;
  });
  const open = (): number => strangers.filter(({ isClosed }) => !isClosed()).length;
  await until(() => open() * bytes <= HELD_OF_ALL && open() < count, 10_000);
  // No more of them go than have to.
  expect(open() * bytes).toBeGreaterThan(HELD_OF_ALL / 2);
  expect(statusesOf(strangers)).toEqual(new Set([503]));
  expect(it.events.find(({ type }) => type === "connection-refused")).toMatchObject({
    why: expect.stringContaining("memory is short") as unknown,
  });
  slow.socket.write(body.slice(-1));
  expect(await slow.answers(1)).toMatchObject([{ status: 200 }]);
  // What they took is free again when they are gone.
  for (const { socket } of strangers) socket.destroy();
  const late = rawTo(httpAddress, STRANGER);
  late.socket.write(head(bytes) + `{"tag":"a"}${" ".repeat(bytes - 11)}`);
  expect(await late.answers(1)).toMatchObject([{ status: 200 }]);
});

test(
  "of headers that do not end, too, where there are many connections",
  { timeout: 60_000 },
  async () => {
    const it = await startTest();
    await createTag(it, "a");
    const { httpAddress } = it.server;
    const [count, bytes] = [1_900, 15_000];
    const strangers = Array.from({ length: count }, () => {
      const raw = rawTo(httpAddress, STRANGER);
      raw.socket.write(`GET /healthz HTTP/1.1\r\nlong: ${"x".repeat(bytes)}`);
      return raw;
    });
    const victim = rawTo(httpAddress);
    const whole = head(11) + '{"tag":"a"}';
    for (let calls = 1; calls <= 20; calls++) {
      victim.socket.write(whole);
      expect((await victim.answers(calls)).at(-1)).toMatchObject({ status: 200 });
    }
    const open = (): number => strangers.filter(({ isClosed }) => !isClosed()).length;
    // 512 connections are not looked at.
    await until(() => (open() - 512) * bytes <= HELD_OF_ALL, 9_000);
    expect(open()).toBeGreaterThan(512);
    expect(statusesOf(strangers)).toEqual(new Set([503]));
  },
);

test("whole requests take nothing from what may be held, however many come", async () => {
  const it = await startTest();
  await createTag(it, "a");
  const { httpAddress } = it.server;
  // On the ones above these it is looked at what comes.
  const silent = Array.from({ length: 520 }, () => rawTo(httpAddress, STRANGER));
  await until(() => silent.every(({ socket }) => !socket.connecting));
  const busy = rawTo(httpAddress);
  const body = `{"tag":"a"}${" ".repeat(60_000)}`;
  const [rounds, atOnce] = [32, 10];
  expect(rounds * atOnce * body.length).toBeGreaterThan(HELD_OF_ALL);
  for (let round = 1; round <= rounds; round++) {
    busy.socket.write((head(body.length) + body).repeat(atOnce));
    await busy.answers(round * atOnce);
  }
  expect(busy.answersFrom(0).every(({ status }) => status === 200)).toBe(true);
  expect(busy.answersFrom(0)).toHaveLength(rounds * atOnce);
  expect(it.events.filter(({ type }) => type === "connection-refused")).toEqual([]);
});

test("a request with more than 100 headers is refused, and the last one is not dropped", async () => {
  const it = await startTest();
  const asked = async (count: number): Promise<number | undefined> => {
    const raw = rawTo(it.server.httpAddress);
    const more = Array.from({ length: count - 1 }, (_, at) => `x-${at}: y\r\n`).join("");
    raw.socket.write(`GET /healthz HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`);
    return (await raw.answers(1))[0]?.status;
  };
  expect([await asked(100), await asked(101), await asked(300)]).toEqual([200, 431, 431]);
});
