// The services of deploy/docker/compose.yaml, started by hand: each in a container with a network of its own, as an engine
// would do it, with the very words, variables, secrets, volumes and health checks of the file.
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import { until } from "../fleet/until.ts";
import { type Bind, Container, type ContainerOptions, MACHINE, runContainer } from "./container.ts";
import { type Image, root } from "./image.ts";

export const COMPOSE: string = path.join(root, "deploy/docker/compose.yaml");

type Condition = "service_completed_successfully" | "service_healthy";

/** What the file says of a service, as far as we use it. */
export interface Service {
  readonly image: string;
  readonly user?: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly secrets?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: Condition }>>;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly stop_signal?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly deploy?: { readonly resources?: { readonly limits?: Readonly<Record<string, string>> } };
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** The file, with its anchors and merged keys resolved. */
export function composeFile(): ComposeFile {
  return parse(readFileSync(COMPOSE, "utf8"), { merge: true }) as ComposeFile;
}

/** A place on the machine for networks, volumes and secrets. Needs root. Close it. */
export class ComposeStage implements AsyncDisposable {
  readonly file: ComposeFile = composeFile();
  readonly #home: string;
  readonly #image: Image;
  readonly #searchPath: string;
  readonly #name = `im${process.pid % 100_000}`;
  readonly #subnet = `10.199.${100 + (process.pid % 100)}`;
  readonly #services = new Map<string, Container>();
  readonly #names: readonly string[];

  /** `searchPath`: where the programs are that other images bring. */
  constructor(home: string, image: Image, searchPath: string) {
    this.#home = home;
    this.#image = image;
    this.#searchPath = searchPath;
    this.#names = Object.keys(this.file.services);
    execFileSync(path.join(root, "deploy/docker/secrets.sh"), [path.join(home, "secrets")]);
    const hosts = this.#names.map((name) => `${this.address(name)} ${name}\n`);
    writeFileSync(path.join(home, "hosts"), ["127.0.0.1 localhost\n", ...hosts].join(""));
    const users =
      "root:x:0:0::/:/bin/sh\nservice:x:999:999::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n";
    writeFileSync(path.join(home, "passwd"), users);
    this.#ip("link", "add", this.#name, "type", "bridge");
    this.#ip("addr", "add", `${this.#subnet}.1/24`, "dev", this.#name);
    this.#ip("link", "set", this.#name, "up");
    for (const name of this.#names) this.#addNetwork(name);
  }

  /** Of a service, on a network that only this machine sees. */
  address(name: string): string {
    return `${this.#subnet}.${this.#names.indexOf(name) + 10}`;
  }

  secret(name: string): string {
    return path.join(this.#home, "secrets", name);
  }

  container(name: string): Container {
    const found = this.#services.get(name);
    if (found === undefined) throw new Error(`${name} was not started`);
    return found;
  }

  /** Starts a service once those that it depends on are as it wants them. */
  async start(name: string): Promise<void> {
    const { depends_on: needs = {} } = this.#service(name);
    for (const [need, { condition }] of Object.entries(needs)) {
      if (condition === "service_healthy") await this.healthy(need);
      else await this.#completed(need);
    }
    this.#services.set(name, new Container(this.#options(name, this.#words(name))));
  }

  async healthy(name: string): Promise<void> {
    await this.container(name).until(`${name} is healthy`, async () => {
      const { test = [] } = this.#service(name).healthcheck ?? {};
      const [kind, ...words] =
        test.length === 0 ? ["CMD", ...this.#image.config.healthcheck] : test;
      const shell = ["/bin/sh", "-c", (words[0] ?? "").replaceAll("$$", "$")];
      const { exitCode } = await this.run(name, kind === "CMD-SHELL" ? shell : words);
      return exitCode === 0;
    });
  }

  /** Runs a program as `docker compose exec` does: with what the service sees. */
  run(
    name: string,
    words: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): ReturnType<typeof runContainer> {
    const options = this.#options(name, words);
    return runContainer({ ...options, env: { ...options.env, ...env } });
  }

  /** Stops a service as an engine does; answers the exit code. */
  async stop(name: string): Promise<number | undefined> {
    const container = this.container(name);
    container.kill((this.#service(name).stop_signal ?? "SIGTERM") as NodeJS.Signals);
    return container.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const container of this.#services.values()) await container[Symbol.asyncDispose]();
    for (const name of this.#names) this.#ip("netns", "del", this.#network(name));
    this.#ip("link", "del", this.#name);
  }

  async #completed(name: string): Promise<void> {
    const container = this.container(name);
    const exitCode = await container.ended;
    if (exitCode !== 0) throw new Error(`${name} ended with ${exitCode}\n${container.err}`);
  }

  #service(name: string): Service {
    const service = this.file.services[name];
    if (service === undefined) throw new Error(`there is no service ${name}`);
    return service;
  }

  #words(name: string): readonly string[] {
    const { image, entrypoint, command } = this.#service(name);
    const { config } = this.#image;
    const isOurs = image === "idmint";
    const program = path.posix.basename(image).split(":")[0] ?? "";
    const first = entrypoint ?? (isOurs ? config.entrypoint : [program]);
    return [...first, ...(command ?? (isOurs && entrypoint === undefined ? config.command : []))];
  }

  #options(name: string, words: readonly string[]): ContainerOptions {
    const service = this.#service(name);
    const isOurs = service.image === "idmint";
    const user = service.user ?? `${this.#image.config.uid}:${this.#image.config.gid}`;
    const [uid = 0, gid = 0] = user.split(":").map(Number);
    return {
      image: isOurs ? this.#image.folder : undefined,
      binds: [
        ...(isOurs ? this.#image.binds : MACHINE),
        { from: path.join(this.#home, "hosts"), to: "/etc/hosts" },
        { from: path.join(this.#home, "passwd"), to: "/etc/passwd" },
        ...(service.volumes ?? []).map((volume) => this.#volume(volume, name, uid)),
        ...(service.secrets ?? []).map((secret) => ({
          from: this.secret(path.posix.basename(this.file.secrets[secret]?.file ?? "missing")),
          to: `/run/secrets/${secret}`,
        })),
      ],
      tmpfs: service.tmpfs ?? [],
      words,
      env: {
        ...(isOurs ? this.#image.env : { PATH: this.#searchPath, LC_ALL: "C" }),
        ...service.environment,
      },
      cwd: isOurs ? this.#image.config.workdir : "/",
      uid,
      gid,
      network: this.#network(name),
    };
  }

  /** A folder of the repository, or a volume, which belongs to the user of its first container. */
  #volume(text: string, name: string, uid: number): Bind {
    const [from = "", to = "", mode] = text.split(":");
    if (from.startsWith(".")) {
      return { from: path.resolve(path.dirname(COMPOSE), from), to, isWritable: mode !== "ro" };
    }
    if (!(from in this.file.volumes)) throw new Error(`${name}: there is no volume ${from}`);
    const folder = path.join(this.#home, `volume-${from}`);
    mkdirSync(folder, { recursive: true });
    chownSync(folder, uid, uid);
    chmodSync(folder, 0o700);
    return { from: folder, to, isWritable: mode !== "ro" };
  }

  #network(name: string): string {
    return `${this.#name}-${name}`;
  }

  #addNetwork(name: string): void {
    const network = this.#network(name);
    const at = this.#names.indexOf(name);
    const [outside, inside] = [`${this.#name}v${at}`, `${this.#name}p${at}`];
    this.#ip("netns", "add", network);
    this.#ip("link", "add", outside, "type", "veth", "peer", "name", inside);
    this.#ip("link", "set", inside, "netns", network);
    this.#ip("link", "set", outside, "master", this.#name);
    this.#ip("link", "set", outside, "up");
    const within = ["netns", "exec", network, "ip"];
    this.#ip(...within, "addr", "add", `${this.address(name)}/24`, "dev", inside);
    this.#ip(...within, "link", "set", inside, "up");
    this.#ip(...within, "link", "set", "lo", "up");
  }

  #ip(...words: readonly string[]): void {
    execFileSync("ip", words, { stdio: "pipe" });
  }
}

/** Waits until somebody says so, longer than a health check takes. */
export async function eventually(what: string, ask: () => Promise<boolean>): Promise<void> {
  await until(what, ask, { withinMs: 60_000, everyMs: 500 });
}
