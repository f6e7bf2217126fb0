// Runs a program as an engine would run it in a container, without an engine: in namespaces of its own, as the first
// process, on a root that is read-only but for what is mounted into it.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { tellReaper } from "../fleet/child.ts";
import { until } from "../fleet/until.ts";

/** A file or a folder of the machine, and where the container sees it. */
export interface Bind {
  readonly from: string;
  readonly to: string;
  readonly isWritable?: boolean;
}

export interface ContainerOptions {
  /** Folder with the file system of an image; without one there is nothing but what is bound. */
  readonly image?: string | undefined;
  readonly binds?: readonly Bind[];
  /** Folders that are empty at the start, in memory, and may be written. */
  readonly tmpfs?: readonly string[];
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Numbers. Only root can choose them; for anybody else the program has their own rights. */
  readonly uid: number;
  readonly gid: number;
  /** Name of a network namespace (`ip netns`). Default: the network of the machine. */
  readonly network?: string;
}

const isRoot = process.getuid?.() === 0;

/** What a program of this machine needs of it, for containers without an image. */
export const MACHINE: readonly Bind[] = [
  "/usr",
  "/lib",
  "/lib64",
  "/bin",
  "/sbin",
  "/etc/group",
  "/etc/hosts",
  "/etc/ld.so.cache",
  "/etc/localtime",
  "/etc/nsswitch.conf",
  "/etc/passwd",
  "/etc/ssl",
].map((place) => ({ from: place, to: place }));

/** A program that runs in a container. Close it. */
export class Container implements AsyncDisposable {
  readonly #outer: ChildProcess;
  readonly #stage: string;
  /** The exit code, or undefined when a signal ended it. */
  readonly ended: Promise<number | undefined>;
  out = "";
  err = "";

  constructor(options: ContainerOptions) {
    this.#stage = mkdtempSync(path.join(tmpdir(), "idmint-container-"));
    // Two namespaces of processes, one in the other: the first dies with the process that was started here, which the
    // program in the second would not, since it changes its user.
    const outer = ["unshare", ...(isRoot ? [] : ["-r"]), "-p", "-f", "--kill-child"];
    const inner = ["unshare", "-m", "-p", "-f", "--propagation", "private"];
    const inside = ["sh", "-c", script(options, this.#stage)];
    const all = [...networkWords(options), ...outer, ...inner, ...inside];
    const [command = "", ...args] = all;
    const searchPath = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;
    this.#outer = spawn(command, args, {
      env: { PATH: searchPath },
      stdio: ["ignore", "pipe", "pipe"],
    });
    tellReaper(`+${this.#outer.pid}\n`);
    this.#outer.stdout?.setEncoding("utf8").on("data", (text: string) => (this.out += text));
    this.#outer.stderr?.setEncoding("utf8").on("data", (text: string) => (this.err += text));
    this.ended = new Promise((resolve, reject) => {
      this.#outer.once("error", reject);
      this.#outer.once("close", (code) => {
        tellReaper(`-${this.#outer.pid}\n`);
        resolve(code ?? undefined);
      });
    });
  }

  get runs(): boolean {
    return this.#outer.exitCode === null && this.#outer.signalCode === null;
  }

  /** The number on the machine of its first process. */
  get pid(): number {
    return childOf(childOf(this.#outer.pid ?? 0));
  }

  /** A line of the kernel about its first process, such as `Uid` or `NSpid`: see proc_pid_status(5). */
  status(name: string): string {
    const text = readFileSync(`/proc/${this.pid}/status`, "utf8");
    return new RegExp(String.raw`^${name}:\s*(.*)$`, "m").exec(text)?.[1] ?? "";
  }

  /** Sends a signal as an engine does: to the first process alone. */
  kill(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  /** Asks until the answer is something; fails with what the program said when it has ended. */
  async until(what: string, ask: () => Promise<boolean> | boolean): Promise<void> {
    let isOver = false;
    await until(
      what,
      () => {
        if (!this.runs) isOver = true;
        return isOver || ask();
      },
      { withinMs: 60_000, everyMs: 100 },
    );
    if (isOver) throw new Error(`it ended before: ${what}\n${this.out}${this.err}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.runs) this.#outer.kill("SIGKILL");
    await this.ended;
    rmSync(this.#stage, { recursive: true, force: true });
  }
}

/** Runs a program in a container to its end. */
export async function runContainer(
  options: ContainerOptions,
): Promise<{ readonly exitCode: number | undefined; readonly out: string; readonly err: string }> {
  await using container = new Container(options);
  const exitCode = await container.ended;
  return { exitCode, out: container.out, err: container.err };
}

function childOf(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return Number(children.trim().split(" ")[0]);
}

function networkWords({ network }: ContainerOptions): readonly string[] {
  return network === undefined ? [] : ["ip", "netns", "exec", network];
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * The root is a file system in memory, or such a one above the image. It is made read-only once everything has its place;
 * what is mounted below it stays as it is. The exec at the end leaves no shell behind, so the program is the first process.
 */
function script(options: ContainerOptions, stage: string): string {
  const { image, binds = [], tmpfs = [], env, words, cwd = "/", uid, gid } = options;
  const root = `${stage}/root`;
  const owner = isRoot ? `,uid=${uid},gid=${gid}` : "";
  const lines = [
    "set -eu",
    `mount -t tmpfs -o mode=755 none ${stage}`,
    `mkdir -p ${stage}/upper ${stage}/work ${root}`,
    image === undefined
      ? `mount --bind ${root} ${root}`
      : `mount -t overlay none -o lowerdir=${image},upperdir=${stage}/upper,workdir=${stage}/work ${root}`,
    `mkdir -p ${root}/proc ${root}/dev ${root}${cwd}`,
    `mount -t proc none ${root}/proc`,
    ...DEVICES.map(
      (name) => `touch ${root}/dev/${name}; mount --bind /dev/${name} ${root}/dev/${name}`,
    ),
    ...["/dev/shm", ...tmpfs].map(
      (folder) =>
        `mkdir -p ${root}${folder}; mount -t tmpfs -o mode=700${owner} none ${root}${folder}`,
    ),
    // Behind the folders in memory: what is bound may lie in one of them.
    ...binds.map((bind) => bindLine(root, bind)),
    `mount -o remount,bind,ro ${root}`,
    // Away from the folder of the machine, which this process would keep open.
    "cd /",
  ];
  const variables = Object.entries(env).map(([name, value]) => quoted(`${name}=${value}`));
  const rights = isRoot
    ? `setpriv --no-new-privs --bounding-set=-all,+setuid,+setgid,+sys_chroot,+dac_override`
    : `setpriv --no-new-privs`;
  const user = isRoot ? `--setuid ${uid} --setgid ${gid}` : "";
  const enter = `/usr/bin/unshare --root=${root} --wd=${quoted(cwd)} ${user}`;
  return [
    ...lines,
    `exec env -i ${variables.join(" ")} /usr/bin/${rights} ${enter} ${words.map(quoted).join(" ")}`,
  ].join("\n");
}

const DEVICES = ["null", "zero", "full", "random", "urandom"];

function bindLine(root: string, { from, to, isWritable = false }: Bind): string {
  const [source, target] = [quoted(from), quoted(`${root}${to}`)];
  const make = `if [ -d ${source} ]; then mkdir -p ${target}; else mkdir -p ${quoted(path.dirname(`${root}${to}`))}; [ -e ${target} ] || touch ${target}; fi`;
  const readOnly = isWritable ? "" : `; mount -o remount,bind,ro ${target}`;
  return `if [ -e ${source} ]; then ${make}; mount --bind ${source} ${target}${readOnly}; fi`;
}
