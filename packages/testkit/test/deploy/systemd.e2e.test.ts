// The unit: what systemd's own tools say of it, and whether a server gets along with what it forbids.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parse } from "yaml";
import { expect, onTestFinished, test } from "vitest";
import { selfSigned } from "../../src/certificate.ts";
import { root } from "../../src/deploy/image.ts";
import { debianProgram } from "../../src/deploy/tools.ts";
import { serverEnv } from "../../src/doors.ts";
import { CLI } from "../../src/program.ts";
import { Api } from "../../src/fleet/api.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { isLong } from "../fleet-support.ts";

const UNIT = path.join(root, "deploy/systemd/idmint.service");
const DOC = path.join(root, "docs/deploy/systemd.md");
const NOBODY = 65_534;
/** What systemd-analyze calls ten times this is 10, which is a unit that forbids nothing. */
const MOST_EXPOSURE = 15;
const NODE = [process.execPath, "-C", "idmint-source", CLI] as const;

const unit = readFileSync(UNIT, "utf8");

/** The values of a setting, in the order of the unit. */
function settings(name: string): readonly string[] {
  return [...unit.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map(([, value]) => value ?? "");
}

function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), "idmint-unit-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  chmodSync(made, 0o755);
  return made;
}

function analyze(...words: readonly string[]): { status: number | null; text: string } {
  const program = debianProgram("systemd-analyze", "systemd");
  const { status, stdout, stderr } = spawnSync(program, words, {
    encoding: "utf8",
    env: { ...process.env, SYSTEMD_PAGER: "", SYSTEMD_COLORS: "0" },
  });
  return { status, text: stdout + stderr };
}

/** The unit with another text in the place of one, as a file of the same name. */
function unitWith(find: string, replace: string): string {
  expect(unit).toContain(find);
  const file = path.join(folder(), path.basename(UNIT));
  writeFileSync(file, unit.replace(find, replace));
  return file;
}

test("systemd understands every line", () => {
  // What it starts is not installed here.
  const here = ["ExecStart=/opt/idmint/bin/idmint", "ExecStart=/bin/true"] as const;
  expect(analyze("verify", unitWith(...here))).toEqual({ status: 0, text: "" });
  const mistyped = `${here[0]} serve\nProtectSystems=strict`;
  const { text } = analyze("verify", unitWith(`${here[0]} serve`, mistyped));
  expect(text).toContain("ProtectSystems");
});

function judge(file: string): ReturnType<typeof analyze> {
  return analyze("security", "--offline=true", `--threshold=${MOST_EXPOSURE}`, file);
}

test("its exposure stays low", () => {
  const { status, text } = judge(UNIT);
  expect(status, text).toBe(0);
  const open = judge(
    unitWith("SystemCallFilter=@system-service\nSystemCallFilter=~@privileged @resources\n", ""),
  );
  expect(open.status).not.toBe(0);
});

/** What a program does most. They are not traced, which makes it slow, and need to be allowed without a look. */
const COMMON = [
  "close",
  "fstat",
  "futex",
  "madvise",
  "mmap",
  "mprotect",
  "munmap",
  "openat",
  "read",
  "statx",
  "write",
];

/** The system calls of a filter, groups and exceptions resolved. */
function allowedCalls(): ReadonlySet<string> {
  const groups = new Map<string, string[]>();
  let group: string[] = [];
  for (const line of analyze("syscall-filter").text.split("\n")) {
    if (line.startsWith("@")) groups.set(line.trim(), (group = []));
    else if (/^ +[@\w]/.test(line)) group.push(line.trim());
  }
  const callsOf = (name: string): readonly string[] =>
    name.startsWith("@") ? (groups.get(name) ?? []).flatMap(callsOf) : [name];
  const allowed = new Set<string>();
  for (const filter of settings("SystemCallFilter")) {
    const isDenied = filter.startsWith("~");
    for (const call of filter.replace("~", "").split(" ").flatMap(callsOf)) {
      if (isDenied) allowed.delete(call);
      else allowed.add(call);
    }
  }
  return allowed;
}

// Under strace a server is many times slower.
test.runIf(isLong)(
  "a server needs no system call and no kind of socket that the unit forbids",
  async () => {
    const home = folder();
    const owner = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
    const data = path.join(home, "data");
    mkdirSync(data);
    chmodSync(data, 0o777);
    const address = `127.0.0.1:${await freePort()}`;
    const env = {
      PATH: process.env["PATH"],
      ...serverEnv(),
      IDMINT_STORE_URL: `sqlite:${data}/store/idmint.db`,
      IDMINT_GRPC_ADDRESS: address,
      IDMINT_HTTP_ADDRESS: `127.0.0.1:${await freePort()}`,
      IDMINT_PROCESSES: "2",
    };
    const options = { ...owner, env, cwd: data, encoding: "utf8" } as const;
    const [node, ...words] = NODE;
    const migration = spawnSync(node, [...words, "migrate"], options);
    expect(migration.status, migration.stderr).toBe(0);

    const trace = path.join(data, "trace");
    const strace = debianProgram("strace", "strace");
    const traced = [
      "-f",
      "-qq",
      "--seccomp-bpf",
      "-e",
      `trace=!${COMMON.join(",")}`,
      "-o",
      trace,
      ...NODE,
      "serve",
      "--json",
    ];
    const server = spawn(strace, traced, {
      ...owner,
      env,
      cwd: data,
      stdio: ["ignore", "pipe", "ignore"],
    });
    onTestFinished(() => void server.kill("SIGKILL"));
    const ended = new Promise<number | string | null>((resolve) => {
      server.once("exit", (code, signal) => resolve(code ?? signal));
    });
    // It says so when all of its processes serve and it minds signals.
    await Promise.race([new Promise((resolve) => server.stdout?.once("data", resolve)), ended]);
    using api = new Api(address);
    await api.createTag({ name: "orders" });
    expect(await api.id("orders")).toBe(1n);
    // To the server: strace, told to end, lets go of it.
    const first = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, "utf8");
    process.kill(Number(first.trim().split(" ")[0]), "SIGTERM");
    expect(await ended).toBe(0);

    const lines = readFileSync(trace, "utf8");
    const used = new Set([...lines.matchAll(/^\d+ +(\w+)\(/gm)].map(([, name]) => name ?? ""));
    expect(used.size).toBeGreaterThan(30);
    const calls = allowedCalls();
    expect([...used, ...COMMON].filter((call) => !calls.has(call))).toEqual([]);
    const families = [...lines.matchAll(/ socket(?:pair)?\((AF_\w+)/g)].map(
      ([, name]) => name ?? "",
    );
    expect(families).toContain("AF_INET");
    const [allowed = ""] = settings("RestrictAddressFamilies");
    expect(families.filter((family) => !allowed.split(" ").includes(family))).toEqual([]);
  },
);

test("the configuration of the page, with the variables and secrets of the unit, is right", () => {
  const home = folder();
  const [yaml = ""] = /^```yaml\n([^]*?)^```$/m.exec(readFileSync(DOC, "utf8"))?.slice(1) ?? [];
  expect(Object.keys(parse(yaml) as object)).toContain("store");
  const { cert, key } = selfSigned("ids-1.internal");
  const texts = {
    "idmint.yaml": yaml,
    "store-password": "secret\n",
    "tls.crt": cert,
    "tls.key": key,
  };
  for (const [name, text] of Object.entries(texts)) writeFileSync(path.join(home, name), text);
  // A credential lies under its name in a folder of the unit, %d, and comes from the file behind the colon.
  const credentials = settings("LoadCredential").map((each) => each.split(":"));
  expect(credentials.map(([name, file]) => [name, path.basename(file ?? "")])).toEqual([
    ["store-password", "store-password"],
    ["tls.crt", "tls.crt"],
    ["tls.key", "tls.key"],
  ]);
  const variables = settings("Environment").map((each) =>
    each.replace("%d", home).replace("/etc/idmint", home).split("="),
  );
  const [node, ...words] = NODE;
  const { status, stdout, stderr } = spawnSync(node, [...words, "config", "check"], {
    env: {
      PATH: process.env["PATH"],
      ...(Object.fromEntries(variables) as Record<string, string>),
    },
    encoding: "utf8",
  });
  expect(status, stderr).toBe(0);
  expect(stdout).toContain("postgres://db.internal:5432/idmint");
});
