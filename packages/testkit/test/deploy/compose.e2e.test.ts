// compose.yaml: what its schema says, what it must not do, and in the long form its services, started by hand.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, onTestFinished, test } from "vitest";
import { COMPOSE, composeFile, ComposeStage, eventually } from "../../src/deploy/compose.ts";
import { assembledImage, root } from "../../src/deploy/image.ts";
import { debianProgram, goModule } from "../../src/deploy/tools.ts";
import { prometheusPrograms } from "../../src/deploy/prometheus.ts";
import { redisProgram } from "../../src/redis/files.ts";
import { isLong } from "../fleet-support.ts";

const LONG_MS = 600_000;
const { services, secrets } = composeFile();

function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-compose-"));
  chmodSync(folder, 0o755);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("compose.yaml is what the schema of the Compose Specification wants", () => {
  const module = goModule("github.com/compose-spec/compose-go/v2", "v2.16.2");
  const text = readFileSync(path.join(module, "schema/compose-spec.json"), "utf8");
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  const check = ajv.compile(JSON.parse(text) as object);
  expect([check(composeFile()), check.errors]).toEqual([true, null]);
  const [name = ""] = Object.keys(services);
  const mistyped = { ...composeFile(), services: { ...services, [name]: { imag: "x" } } };
  expect(check(mistyped)).toBe(false);
});

describe.each(Object.entries(services))("the service %s", (_name, service) => {
  test("is confined, limited and seen by this machine only", () => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
    });
    expect(Object.keys(service.deploy?.resources?.limits ?? {})).toEqual(["cpus", "memory"]);
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
    const words = JSON.stringify([service.environment ?? {}, service.command ?? []]);
    expect(words).not.toMatch(/(?:PASSWORD|TOKEN)"?[:=]/);
    for (const secret of service.secrets ?? []) expect(secrets).toHaveProperty(secret);
  });

  test("mounts files that are there", () => {
    const files = (service.volumes ?? []).map((volume) => volume.split(":")[0] ?? "");
    for (const file of files.filter((each) => each.startsWith("."))) {
      expect(existsSync(path.resolve(path.dirname(COMPOSE), file)), file).toBe(true);
    }
  });
});

test("secrets.sh makes every secret that compose.yaml names, for its owner only, and leaves what is there", () => {
  const folder = path.join(temporaryFolder(), "secrets");
  const script = path.join(root, "deploy/docker/secrets.sh");
  execFileSync(script, [folder]);
  const texts = () =>
    Object.fromEntries(
      readdirSync(folder).map((name) => [name, readFileSync(path.join(folder, name), "utf8")]),
    );
  const made = texts();
  expect(Object.keys(made).toSorted()).toEqual([...Object.keys(secrets), "ops_token"].toSorted());
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  execFileSync(script, [folder]);
  expect(texts()).toEqual(made);
});

/** The folders of the programs that other images bring: of Debian's PostgreSQL, Redis and Prometheus. */
function searchPath(): string {
  debianProgram("pg_lsclusters", "postgresql", "postgresql-client");
  const [version = ""] = readdirSync("/usr/lib/postgresql").toSorted().toReversed();
  const programs = [redisProgram().command, prometheusPrograms().prometheus];
  const folders = programs.map((program) => path.dirname(program));
  return [`/usr/lib/postgresql/${version}/bin`, ...folders, "/usr/bin", "/bin"].join(":");
}

/** The words behind the service of each `docker compose … exec` on the page. */
function execLines(): readonly { readonly service: string; readonly words: readonly string[] }[] {
  const text = readFileSync(path.join(root, "docs/deploy/docker.md"), "utf8");
  const lines = text.matchAll(/^docker compose .* exec -e IDMINT_TOKEN (\S+) (.+)$/gm);
  return [...lines].map(([, service = "", words = ""]) => ({ service, words: words.split(" ") }));
}

test.runIf(isLong)(
  "its services run, started by hand in their order",
  async () => {
    const home = temporaryFolder();
    await using stage = new ComposeStage(home, assembledImage(home), searchPath());
    const servers = ["idmint-1", "idmint-2", "idmint-3"];
    for (const name of ["postgres-a", "redis", "postgres-b", "migrate", ...servers, "prometheus"]) {
      await stage.start(name);
    }
    for (const name of [...servers, "prometheus"]) await stage.healthy(name);

    const token = { IDMINT_TOKEN: readFileSync(stage.secret("ops_token"), "utf8").trim() };
    const said = [];
    for (const { service, words } of execLines()) said.push(await stage.run(service, words, token));
    expect(
      said.map(({ exitCode }) => exitCode),
      said.map(({ err }) => err).join(""),
    ).toEqual([0, 0]);
    const ids = new Set([said.at(-1)?.out.trim()]);
    const next = async (name: string): Promise<void> => {
      const { exitCode, out, err } = await stage.run(
        name,
        ["idmint", "id", "next", "orders"],
        token,
      );
      expect(exitCode, err).toBe(0);
      expect(ids).not.toContain(out.trim());
      ids.add(out.trim());
    };
    for (const name of servers) await next(name);
    const stranger = await stage.run("idmint-1", ["idmint", "id", "next", "orders"]);
    expect(stranger.err).toContain("UNAUTHENTICATED");
    const counted = [
      "idmint",
      "tag",
      "create",
      "counted",
      "--kind",
      "sequence",
      "--backend",
      "redis",
    ];
    expect((await stage.run("idmint-1", counted, token)).exitCode).toBe(0);
    expect((await stage.run("idmint-2", ["idmint", "id", "next", "counted"], token)).out).toBe(
      "1\n",
    );

    const query = `http://${stage.address("prometheus")}:9090/api/v1/query?query=sum(up{job="idmint"})`;
    await eventually("Prometheus scrapes all servers", async () =>
      (await (await fetch(query)).text()).includes(`"3"`),
    );

    const isRecorded = async () =>
      /^standbys +b$/m.test((await stage.run("idmint-1", ["idmint", "store", "status"])).out);
    await eventually("the standby is recorded", isRecorded);
    await next("idmint-1");
    await setTimeout(2_000);
    stage.container("postgres-a").kill("SIGKILL");
    await stage.container("postgres-a").ended;
    const superuser = {
      PGPASSWORD: readFileSync(stage.secret("postgres_password"), "utf8").trim(),
    };
    const sql = [
      "psql",
      "--host=postgres-b",
      "--username=postgres",
      "--command=SELECT pg_promote()",
    ];
    expect((await stage.run("postgres-b", sql, superuser)).exitCode).toBe(0);
    const isAccepted = async () =>
      (await stage.run("idmint-1", ["idmint", "store", "status"])).exitCode === 0;
    await eventually("the servers accept the standby", isAccepted);
    expect(
      (await stage.run("idmint-1", ["idmint", "tag", "create", "later"], token)).exitCode,
    ).toBe(0);
    for (const name of servers) await next(name);

    for (const name of servers) expect(await stage.stop(name)).toBe(0);
  },
  LONG_MS,
);
