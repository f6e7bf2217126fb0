import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { leakIn, secretsIn } from "../../src/fleet/leaks.ts";

test("secrets are found in options, in URLs and in files", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-leaks-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "key");
  writeFileSync(file, "-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----\n");
  const secrets = secretsIn({
    IDMINT_STORE_PASSWORD: "hunter2",
    IDMINT_STORE_URL: "postgres://me:p%40ssword@db/ids",
    IDMINT_TLS_KEY_FILE: file,
    IDMINT_UNGUESSABLE_KEYS: "1=00112233",
    IDMINT_GRPC_ADDRESS: "127.0.0.1:7600",
  });
  expect(secrets).toEqual(["hunter2", "p%40ssword", "p@ssword", "abcdefgh", "00112233"]);
});

test.each([
  ["a password", "cannot log in with hunter2", "hunter2"],
  [
    "a token",
    `no idm_${"0".repeat(16)}_${"a".repeat(43)} here`,
    `idm_${"0".repeat(16)}_${"a".repeat(43)}`,
  ],
  ["a key", "-----BEGIN PRIVATE KEY-----\nMII", "-----BEGIN PRIVATE KEY-----"],
  ["nothing", "serving at 127.0.0.1:7600", undefined],
])("a text that holds %s is told", (_, text, leak) => {
  expect(leakIn(text, ["hunter2"])).toBe(leak);
});
