// The image as the Dockerfile builds it, by buildah in a chroot: no engine, no daemon. Its bases are made of Debian's
// packages, since no registry of images is needed then: the same packages as in the base that the Dockerfile names.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import path from "node:path";
import { imageConfig } from "./dockerfile.ts";
import { DOCKERFILE, type Image, root } from "./image.ts";
import { debianProgram } from "./tools.ts";

const RELEASE = "bookworm";
/** What distroless/cc is made of. */
const RUNTIME_PACKAGES =
  "base-files,base-passwd,netbase,tzdata,ca-certificates,libc6,libgcc-s1,libstdc++6";

/** Needs root. `home` holds everything; call `unmount` before it is removed. */
export function builtImage(home: string): { readonly image: Image; readonly unmount: () => void } {
  const storage = ["--root", `${home}/root`, "--runroot", `${home}/run`];
  const program = debianProgram("buildah", "buildah");
  const buildah = (...words: readonly string[]): string =>
    execFileSync(program, [...storage, "--storage-driver", "overlay", ...words], {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, BUILDAH_ISOLATION: "chroot" },
      stdio: ["ignore", "pipe", "pipe"],
      maxBuffer: 2 ** 28,
    }).trim();
  const base = (
    name: string,
    flags: readonly string[],
    more: (container: string) => void,
  ): string => {
    const tar = path.join(home, `${name}.tar`);
    execFileSync(debianProgram("mmdebstrap", "mmdebstrap"), [...flags, RELEASE, tar], {
      stdio: "pipe",
    });
    const container = buildah("from", "scratch");
    buildah("add", "--quiet", container, tar, "/");
    more(container);
    buildah("commit", "--quiet", container, `localhost/${name}`);
    return `localhost/${name}`;
  };

  const build = base("build", ["--variant=minbase", "--include=ca-certificates"], (container) => {
    buildah("copy", "--quiet", container, nodeAndNpm(home), "/usr/local");
    // A network of a company's own may have an authority of its own.
    const authorities = process.env["NODE_EXTRA_CA_CERTS"];
    if (authorities === undefined) return;
    buildah("copy", "--quiet", container, authorities, "/usr/local/authorities.pem");
    buildah("config", "--env", "NODE_EXTRA_CA_CERTS=/usr/local/authorities.pem", container);
  });
  const runtime = base("runtime", ["--variant=extract", `--include=${RUNTIME_PACKAGES}`], () => {});
  const bases = ["--build-arg", `BUILD_BASE=${build}`, "--build-arg", `RUNTIME_BASE=${runtime}`];
  const options = ["--format", "docker", "--network", "host", "--pull=false", "--layers=false"];
  buildah("bud", ...options, ...bases, "--file", DOCKERFILE, "--tag", "localhost/idmint", ".");

  const container = buildah("from", "--pull=false", "localhost/idmint");
  const folder = buildah("mount", container);
  const config = imageConfig(DOCKERFILE);
  const said = JSON.parse(buildah("inspect", "--type", "image", "localhost/idmint")) as {
    readonly Docker: { readonly config: Readonly<Record<string, unknown>> };
  };
  assertSame(said.Docker.config, config);
  const image = { config, folder, binds: [], env: config.env };
  return { image, unmount: () => buildah("unmount", container) };
}

/** What was read from the Dockerfile must be what a builder made of it. */
function assertSame(said: Readonly<Record<string, unknown>>, config: Image["config"]): void {
  const wanted = {
    User: `${config.uid}:${config.gid}`,
    WorkingDir: config.workdir,
    Entrypoint: config.entrypoint,
    Cmd: config.command,
    StopSignal: config.stopSignal,
    Env: Object.entries(config.env).map(([name, value]) => `${name}=${value}`),
  };
  for (const [name, value] of Object.entries(wanted)) {
    if (JSON.stringify(said[name]) === JSON.stringify(value)) continue;
    throw new Error(
      `${name} of the image is ${JSON.stringify(said[name])}, read as ${JSON.stringify(value)}`,
    );
  }
}

/** As a base for Node has them: this Node, and the npm of the machine. */
function nodeAndNpm(home: string): string {
  const folder = path.join(home, "node");
  mkdirSync(path.join(folder, "bin"), { recursive: true });
  cpSync(process.execPath, path.join(folder, "bin/node"));
  const npm = realpathSync(
    execFileSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).trim(),
  );
  cpSync(path.resolve(npm, "../.."), path.join(folder, "lib/node_modules/npm"), {
    recursive: true,
  });
  for (const name of ["npm", "npx"]) {
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, path.join(folder, "bin", name));
  }
  return folder;
}
