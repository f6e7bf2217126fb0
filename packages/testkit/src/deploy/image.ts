// The image of deploy/docker, run without an engine.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { type Bind, Container, MACHINE, runContainer } from "./container.ts";
import { type ImageConfig, imageConfig } from "./dockerfile.ts";

export const root: string = path.resolve(import.meta.dirname, "../../../..");
export const DOCKERFILE: string = path.join(root, "deploy/docker/Dockerfile");

/** Where the image's files are, and how they are run. */
export interface Image {
  readonly config: ImageConfig;
  /** Folder of its file system; undefined: what was assembled is bound into a bare root, with the machine's libraries. */
  readonly folder: string | undefined;
  readonly binds: readonly Bind[];
  readonly env: Readonly<Record<string, string>>;
}

/** The files that the Dockerfile's own script puts together, below `home`. */
export function assembledImage(home: string): Image {
  const folder = path.join(home, "idmint");
  rmSync(folder, { recursive: true, force: true });
  const words = [path.join(root, "deploy/assemble.sh"), folder];
  const { status, stdout, stderr } = spawnSync("sh", words, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`${words.join(" ")} failed\n${stdout}${stderr}`);
  const config = imageConfig(DOCKERFILE);
  const searchPath = `${folder}/bin:${config.env["PATH"] ?? ""}`;
  return {
    config,
    folder: undefined,
    binds: [...MACHINE, { from: folder, to: folder }],
    env: { ...config.env, PATH: searchPath },
  };
}

/** What is given to a container beside its image. */
export interface ImageRunOptions {
  readonly words?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly binds?: readonly Bind[];
}

/** Starts a container: the entrypoint with the words, or with those of the image. */
export function startImage(image: Image, options: ImageRunOptions = {}): Container {
  const { config } = image;
  return new Container(
    optionsOf(image, [...config.entrypoint, ...(options.words ?? config.command)], options),
  );
}

/** Runs the entrypoint with the words, to its end. */
export function runImage(image: Image, options: ImageRunOptions): ReturnType<typeof runContainer> {
  return runContainer(
    optionsOf(image, [...image.config.entrypoint, ...(options.words ?? [])], options),
  );
}

/** What an engine asks again and again, in a container of its own that shares the network. */
export function checkHealth(
  image: Image,
  options: ImageRunOptions,
): ReturnType<typeof runContainer> {
  return runContainer(optionsOf(image, image.config.healthcheck, options));
}

function optionsOf(
  { config, folder, binds, env }: Image,
  words: readonly string[],
  options: ImageRunOptions,
): ConstructorParameters<typeof Container>[0] {
  const { uid, gid, workdir } = config;
  return {
    image: folder,
    binds: [...binds, ...(options.binds ?? [])],
    words,
    env: { ...env, ...options.env },
    cwd: workdir,
    uid,
    gid,
  };
}
