import { onTestFinished, expect, test } from "vitest";
import { plain } from "../../src/process/plain.ts";
import { idmint, type Play, playServer, refusal, someTag } from "../support.ts";

/** Forges lines, moves the cursor, colours, and turns text around: C0, DEL, C1, line separators, bidi controls. */
const HOSTILE =
  "x\u001B[2J\r\nidmint: all is well\n\u007F\u009B31m\u0085\u2028\u2029\u061C\u200E\u200F\u202A\u202E\u2066\u2069y";
/** Nothing but printable characters, in lines. */
const HARMLESS = /^[^\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]*$/u;

async function ask(play: Play, ...args: readonly string[]) {
  const { address, stop } = await playServer(play);
  onTestFinished(stop);
  const ran = await idmint([...args, "--address", address]);
  const lines = [...ran.out.split("\n"), ...ran.err.split("\n")];
  expect(lines.filter((line) => !HARMLESS.test(line))).toEqual([]);
  return { ...ran, lines };
}

const refuses: Play = {
  getTag: () => {
    throw refusal(5, "TAG_NOT_FOUND", HOSTILE);
  },
};

test("what a server refuses with is one line on a terminal, and nothing of it is obeyed", async () => {
  const { err, lines } = await ask(refuses, "tag", "get", "a");
  expect(err).toContain(plain(HOSTILE));
  expect(lines.filter((line) => line.startsWith("idmint:"))).toHaveLength(1);
});

test("what a server refuses with is harmless in JSON too, and read back as it was sent", async () => {
  const { err } = await ask(refuses, "tag", "get", "a", "--json");
  const { error } = JSON.parse(err) as { error: { message: string } };
  expect(error.message).toContain(HOSTILE);
});

const answers: Play = {
  listTags: () => ({
    tags: [{ ...someTag("a"), description: HOSTILE }, someTag("b")],
    unreachable: [],
    nextPageToken: HOSTILE,
  }),
};

test("a table has a line for each row, whatever is in its cells", async () => {
  const { out, err } = await ask(answers, "tag", "list", "--limit", "2");
  expect(out.split("\n")).toHaveLength(4);
  expect(out).toContain(plain(HOSTILE));
  expect(err.split("\n")).toHaveLength(2);
});

test("an answer in JSON is one line, and read back as it was sent", async () => {
  const { out } = await ask(answers, "tag", "list", "--limit", "2", "--json");
  expect(out.split("\n")).toHaveLength(2);
  expect(JSON.stringify(JSON.parse(out))).toContain(JSON.stringify(HOSTILE));
});
