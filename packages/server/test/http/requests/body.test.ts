import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { HttpRefusal } from "../../../src/http/answers.ts";
import { Body, MAX_BODY_BYTES, MAX_PIECES } from "../../../src/http/requests/body.ts";

function bodyOf(headers: Record<string, string> = {}): {
  stream: PassThrough;
  body: Body;
  kept: () => number;
} {
  const stream = new PassThrough();
  let kept = 0;
  const message = Object.assign(stream, { headers }) as unknown as IncomingMessage;
  const body = new Body(message, (bytes) => void (kept += bytes));
  body.whole.catch(() => undefined);
  return { stream, body, kept: () => kept };
}

test("a body in small pieces comes whole, and takes no more than twice its bytes", async () => {
  const { stream, body, kept } = bodyOf();
  const text = Buffer.from("0123456789abcdef".repeat(MAX_PIECES));
  for (let at = 0; at < text.length; at += 16) stream.write(text.subarray(at, at + 16));
  await new Promise(setImmediate);
  expect(kept()).toBeGreaterThanOrEqual(text.length);
  expect(kept()).toBeLessThanOrEqual(2 * text.length);
  expect(body.isComing).toBe(true);
  stream.end();
  expect((await body.whole).equals(text)).toBe(true);
  expect(body.isComing).toBe(false);
  body.forget();
  expect(kept()).toBe(0);
});

test("the largest body is taken, and takes no more than it has", async () => {
  const { stream, body, kept } = bodyOf();
  for (let part = 0; part < 64; part++) stream.write(Buffer.alloc(MAX_BODY_BYTES / 64, part));
  await new Promise(setImmediate);
  expect(kept()).toBe(MAX_BODY_BYTES);
  stream.end();
  expect(await body.whole).toHaveLength(MAX_BODY_BYTES);
});

test("a body in more pieces than that is refused, however small they are", async () => {
  const { stream, body, kept } = bodyOf();
  for (let piece = 0; piece < MAX_PIECES; piece++) stream.write("x");
  await new Promise(setImmediate);
  expect(body.isComing).toBe(true);
  stream.write("x");
  await expect(body.whole).rejects.toMatchObject({ status: 413 });
  expect(kept()).toBe(0);
});

test.each([
  ["by one byte", {}, MAX_BODY_BYTES + 1],
  ["by its length", { "content-length": `${MAX_BODY_BYTES + 1}` }, 1],
])(
  "a body that is too large %s is refused, and nothing of it is kept",
  async (_how, headers, size) => {
    const { stream, body, kept } = bodyOf(headers);
    const bytes = Buffer.alloc(size);
    stream.write(bytes.subarray(0, size - 1));
    stream.write(bytes.subarray(size - 1));
    await expect(body.whole).rejects.toMatchObject({ status: 413 });
    expect(kept()).toBe(0);
    expect(body.isComing).toBe(false);
  },
);

test("nothing is kept of a body that is broken off or goes away", async () => {
  const broken = bodyOf();
  broken.stream.write(Buffer.alloc(3_000));
  await new Promise(setImmediate);
  expect(broken.kept()).toBe(3_000);
  broken.body.breakOff(new HttpRefusal(503, "unavailable", "no room"));
  await expect(broken.body.whole).rejects.toMatchObject({ status: 503 });
  expect(broken.kept()).toBe(0);
  broken.stream.write(Buffer.alloc(3_000));
  await new Promise(setImmediate);
  expect(broken.kept()).toBe(0);
  const gone = bodyOf();
  gone.stream.write(Buffer.alloc(3_000));
  await new Promise(setImmediate);
  gone.stream.destroy();
  await expect(gone.body.whole).rejects.toMatchObject({ status: 400 });
  expect(gone.kept()).toBe(0);
});
