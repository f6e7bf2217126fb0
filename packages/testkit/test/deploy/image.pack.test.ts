// The image, run without an engine: as nobody and as the first process, on a root that is read-only.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtImage } from "../../src/deploy/buildah.ts";
import { type DockerLine, dockerLine } from "../../src/deploy/docker-words.ts";
import {
  assembledImage,
  checkHealth,
  type ImageRunOptions,
  type Image,
  root,
  runImage,
  startImage,
} from "../../src/deploy/image.ts";
import { goProgram } from "../../src/deploy/tools.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { isLong } from "../fleet-support.ts";

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const BUILD_MS = 900_000;

/** What the Dockerfile's script puts together; in the long form also what buildah makes of the Dockerfile itself. */
const makers: Readonly<Record<string, (home: string) => { image: Image; unmount: () => void }>> = {
  assembled: (home) => ({ image: assembledImage(home), unmount: () => undefined }),
  ...(isLong ? { "built by buildah": builtImage } : {}),
};

describe.each(Object.entries(makers))("the image, %s,", (_name, make) => {
  const home = mkdtempSync(path.join(tmpdir(), "idmint-image-"));
  chmodSync(home, 0o755);
  let image: Image;
  let unmount: (() => void) | undefined;
  beforeAll(() => {
    ({ image, unmount } = make(home));
  }, BUILD_MS);
  afterAll(() => {
    unmount?.();
    rmSync(home, { recursive: true, force: true });
  });

  test("does what docs/deploy/docker.md says, is healthy, and drains at its stop signal", async () => {
    const [migrate, serve, create, next] = docLines();
    const data = path.join(home, "data");
    mkdirSync(data, { mode: 0o700 });
    if (isRoot) chownSync(data, NOBODY, NOBODY);
    const address = `127.0.0.1:${await freePort()}`;
    // An engine gives each container a network of its own. Here it is the machine's.
    const place = { IDMINT_GRPC_ADDRESS: address, IDMINT_ADDRESS: address };
    const http = {
      IDMINT_HTTP_ADDRESS: `127.0.0.1:${await freePort()}`,
      IDMINT_DRAIN_DELAY: "0s",
    };
    const wishOf = ({ env, volumes, words }: DockerLine): ImageRunOptions => ({
      binds: volumes.map((to) => ({ from: data, to, isWritable: true })),
      env: "IDMINT_GRPC_ADDRESS" in env ? { ...env, ...place, ...http } : env,
      ...(words.length === 0 ? {} : { words }),
    });
    const exec = ({ words }: DockerLine) =>
      runImage(image, wishOf({ ...serve, words: words.slice(1) }));
    expect([migrate.isConfined, serve.isConfined]).toEqual([true, true]);
    expect(serve.ports).toEqual(["127.0.0.1:7600:7600"]);

    const migration = await runImage(image, wishOf(migrate));
    expect(migration.exitCode, migration.err).toBe(0);
    expect((await checkHealth(image, wishOf(serve))).exitCode).toBe(4);
    await using server = startImage(image, wishOf(serve));
    const isHealthy = async () => (await checkHealth(image, wishOf(serve))).exitCode === 0;
    await server.until("it is healthy", isHealthy);
    expect(server.status("NSpid").split("\t").at(-1)).toBe("1");
    if (isRoot) expect(server.status("Uid").split("\t")).toEqual(Array(4).fill(String(NOBODY)));
    expect((await exec(create)).exitCode).toBe(0);
    expect((await exec(next)).out).toBe("1\n");
    if (isLong) expect(grpcurl(address, `{"tag":"orders"}`)).toMatchObject({ id: "2" });

    server.kill(image.config.stopSignal as NodeJS.Signals);
    expect(await server.ended, server.err).toBe(0);
    expect(server.err).not.toMatch(/EROFS|EACCES|EPERM|read-only/);
    const kept = ["idmint.db", "idmint.db.witness", "idmint.db.witness.next"];
    expect(readdirSync(data).toSorted()).toEqual(kept);
  });

  test("can write nothing but what is mounted for it", async () => {
    const script = `
      const { writeFileSync } = require("node:fs");
      const folders = ["/", "/tmp", "/etc", "/usr", "/var/lib/idmint", process.execPath + "/.."];
      const written = folders.filter((folder) => {
        try { writeFileSync(folder + "/probe", ""); return true; } catch { return false; }
      });
      console.log(JSON.stringify(written));`;
    const bare = { ...image, config: { ...image.config, entrypoint: [] } };
    const { out, err } = await runImage(bare, { words: ["node", "-e", script] });
    expect(out, err).toBe("[]\n");
  });
});

/** The commands of the page: two that run a container, and two in the one that runs. */
function docLines(): readonly [DockerLine, DockerLine, DockerLine, DockerLine] {
  const text = readFileSync(path.join(root, "docs/deploy/docker.md"), "utf8");
  const block = /^## Run it$[^]*?^```sh fragment=docker\n([^]*?)^```$/m.exec(text)?.[1] ?? "";
  const lines = block.trim().replaceAll("\\\n", " ").split("\n").map(dockerLine);
  const [migrate, serve, create, next, ...others] = lines;
  if (next === undefined || others.length > 0) throw new Error("docker.md has other commands");
  return [migrate, serve, create, next] as [DockerLine, DockerLine, DockerLine, DockerLine];
}

/** What somebody without our tools gets. */
function grpcurl(address: string, request: string): unknown {
  const program = goProgram("grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl", "v1.9.3");
  const words = ["-plaintext", "-d", request, address, "idmint.v1.IdService/GenerateId"];
  return JSON.parse(execFileSync(program, words, { encoding: "utf8" }));
}
