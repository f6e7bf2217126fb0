// The .proto files of the packed @idmint/proto, for other languages.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { runIn } from "./packed.ts";

const root = path.resolve(import.meta.dirname, "../../../..");

function protoFiles(folder: string): ReadonlyMap<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".proto"));
  return new Map(
    files.toSorted().map((name) => [name, readFileSync(path.join(folder, name), "utf8")]),
  );
}

test("the packed .proto files are those of the repository, and buf compiles them from the package alone", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-protos-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const tarball = inject("tarballs").find((each) => each.folder === "proto")?.file ?? "";
  runIn(folder, "tar", "-xzf", tarball);
  const packed = path.join(folder, "package");
  expect(protoFiles(path.join(packed, "proto"))).toEqual(protoFiles(path.join(root, "proto")));
  const buf = path.join(root, "node_modules/.bin/buf");
  const { status, stdout, stderr } = spawnSync(buf, ["build", "--output", "-#format=json"], {
    cwd: packed,
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  expect(status, stderr).toBe(0);
  const { file } = JSON.parse(stdout) as { readonly file: readonly { readonly name: string }[] };
  const names = file.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(["idmint/v1/id_service.proto", "google/rpc/error_details.proto"]),
  );
});
