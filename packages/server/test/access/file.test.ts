import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { IdmintError } from "@idmint/core";
import type { AccessFile } from "@idmint/core/server";
import { expect, onTestFinished, test, vi } from "vitest";
import { parseTinyidTokens } from "../../src/access/tinyid-tokens.ts";
import { watchFile } from "../../src/access/file.ts";
import { parseAccess } from "../../src/access/parse.ts";

const HASH = "ab".repeat(32);
const GOOD = `
principals:
  orders:
    issue: ["orders.*"]
    observe: ["*"]
    certificates: ["spiffe://prod/orders", "orders.example.com"]
  ops:
    admin: ["*"]
    tokens:
      - { id: "0123456789abcdef", sha256: "${HASH}", expires: "2099-01-01T00:00:00Z" }
`;

test("a file names principals, their rights and what proves them", () => {
  const { tokens, certificates } = parseAccess(GOOD);
  expect(certificates).toEqual([
    {
      principal: "orders",
      rights: [
        { role: "issue", tags: "orders.*" },
        { role: "observe", tags: "*" },
      ],
      names: ["spiffe://prod/orders", "orders.example.com"],
    },
  ]);
  expect(tokens).toMatchObject([
    {
      principal: "ops",
      id: "0123456789abcdef",
      hash: HASH,
      rights: [{ role: "admin", tags: "*" }],
    },
  ]);
});

test.each([
  ["principals: [", "is not YAML"],
  ["principals: {a: &a {issue: [x]}, b: *a}", "must not have aliases"],
  ["[]", "must hold one map"],
  ["{principals: {}, more: 1}", "must hold one map"],
  ['principals: {"a b": {issue: ["x"]}}', "must be 1 to 128 characters"],
  ["principals: {a: {isue: [x]}}", "principals.a.isue is not one of"],
  ["principals: {a: {issue: x}}", "principals.a.issue must be a list"],
  ["principals: {a: {issue: ['x*y']}}", "must be the name of a tag"],
  ["principals: {a: {}}", "principals.a must be 1 to 32 rights"],
  ["principals: {a: {issue: [x], tokens: [{id: 1}]}}", "principals.a.tokens[0] must have"],
  [
    "principals: {a: {issue: [x], certificates: [n]}, b: {issue: [x], certificates: [n]}}",
    "principals.b must not repeat certificate n",
  ],
])("%s is refused", (text, fault) => {
  expect(() => parseAccess(text)).toThrow(fault);
});

const KIND = { field: "access.file", parse: parseAccess };

test("a file that changes counts, a bad one does not, and is told once", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "access.yaml");
  await expect(
    watchFile(KIND, file, { onRead: () => undefined, onBad: () => undefined }),
  ).rejects.toThrow("cannot be read (ENOENT)");
  writeFileSync(file, GOOD);
  const onRead = vi.fn<(contents: AccessFile) => void>();
  const bad: IdmintError[] = [];
  const onBad = (error: IdmintError): void => void bad.push(error);
  const watched = await watchFile(KIND, file, { onRead, onBad }, 5);
  expect(onRead).toHaveBeenCalledOnce();
  onTestFinished(() => watched.close());
  writeFileSync(file, "principals: {secret-canary");
  await vi.waitFor(() => expect(bad).toHaveLength(1), 10_000);
  expect(bad[0]?.message).not.toContain("canary");
  expect(onRead).toHaveBeenCalledOnce();
  // Several looks later it was still told once.
  writeFileSync(file, GOOD.replace("ops", "root"));
  await vi.waitFor(() => expect(onRead).toHaveBeenCalledTimes(2), 10_000);
  expect(onRead.mock.calls[1]?.[0]).toMatchObject({ tokens: [{ principal: "root" }] });
  expect(bad).toHaveLength(1);
});

const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");

test("a file of Tinyid's tokens gives each the right to take ids of its tags, and nothing else", () => {
  const found = parseTinyidTokens("0f673adf,test\r\n0f673adf\ttest_odd\nx,shop.*\n\n");
  expect([...found.keys()]).toEqual([hashOf("0f673adf"), hashOf("x")]);
  const principal = found.get(hashOf("0f673adf"));
  expect(principal).toMatchObject({ name: `tinyid-${hashOf("0f673adf").slice(0, 16)}` });
  expect(principal?.rights.list).toEqual([
    { role: "issue", tags: "test" },
    { role: "issue", tags: "test_odd" },
  ]);
});

test.each(["canary", "canary,", ",test", "canary,a b", "canary,-", "x,y\ncanary test", "a,b,c"])(
  "a file of Tinyid's tokens with a line %j is refused by its line, without the token",
  (text) => {
    const line = text.split("\n").length;
    expect(() => parseTinyidTokens(text)).toThrow(
      new RegExp(`^INVALID_ARGUMENT: tinyid.tokens line ${line} must be (?!.*canary)`, "u"),
    );
  },
);
