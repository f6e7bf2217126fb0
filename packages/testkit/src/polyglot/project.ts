// A project as a user makes it by a page, in a folder of its own.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { cacheOf } from "../prepared.ts";
import { callersOf, filesOf, type Language, linesOf } from "./pages.ts";

const root = path.resolve(import.meta.dirname, "../../../..");
const TIMEOUT_MS = 600_000;
/** Kept from run to run, since they take long to make; the page's lines look at them anew. */
const KEPT: ReadonlySet<string> = new Set([".venv", "target"]);

interface Tools {
  /** Programs that must be there, and what somebody has to install for them. */
  readonly programs: readonly string[];
  readonly hint: string;
  /** What the tests add to the page's files. */
  readonly files: readonly string[];
  /** Builds the programs. */
  readonly build: string;
  /** Words that begin a program, in its folder. */
  readonly words: (folder: string, program: Program) => readonly string[];
}

/** What the tests run: callers that mint for a while, or one that does a step after the other. */
type Program = "load" | "caller";

const CLASSPATH = "target/classpath";

const TOOLS: Readonly<Record<Language, Tools>> = {
  go: {
    programs: ["go"],
    hint: "no Go for the tests: install Go 1.26 or newer",
    files: ["load/main.go", "caller/main.go", "ids/fakeclock.go"],
    build: "go build -tags fakeclock -o bin/ ./load ./caller",
    words: (folder, program) => [path.join(folder, "bin", program)],
  },
  java: {
    programs: ["javac", "mvn"],
    hint: "no Java for the tests: install a JDK 17 or newer and Maven 3.8 or newer",
    files: [
      "src/main/java/com/example/orders/Load.java",
      "src/main/java/com/example/orders/Caller.java",
      "src/main/java/com/example/orders/ids/FakeClock.java",
    ],
    build: `mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile=${CLASSPATH}`,
    words: (folder, program) => {
      const libraries = readFileSync(path.join(folder, CLASSPATH), "utf8").trim();
      const classes = path.join(folder, "target/classes");
      const main = program === "load" ? "Load" : "Caller";
      return ["java", "-cp", `${classes}:${libraries}`, `com.example.orders.${main}`];
    },
  },
  python: {
    programs: ["python3"],
    hint: "no Python for the tests: install Python 3.10 or newer, with venv",
    files: ["load.py", "caller.py", "history.py", "ids/__init__.py"],
    build: "true",
    words: (folder, program) => [
      path.join(folder, ".venv/bin/python"),
      path.join(folder, `${program}.py`),
    ],
  },
};

/** A project that was set up. */
export interface Project {
  readonly language: Language;
  readonly folder: string;
  /** Words that begin its process of callers. */
  readonly load: readonly string[];
  /** Words that begin its caller that does steps. */
  readonly caller: readonly string[];
}

/**
 * Sets a language up as the page says, with the .proto files of this clone in the place of those on npm. Each test file has a
 * folder of its own, since they may run at the same time.
 */
export function setUp(language: Language, cache = "polyglot"): Project {
  const folder = path.join(cacheOf(cache), language);
  const { programs, hint, files, build, words } = TOOLS[language];
  if (programs.some((program) => spawnSync("which", [program]).status !== 0)) throw new Error(hint);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    if (!KEPT.has(name)) rmSync(path.join(folder, name), { recursive: true });
  }
  for (const name of [...filesOf(language), ...files]) {
    cpSync(path.join(callersOf(language), name), path.join(folder, name));
  }
  const [lines] = linesOf(language);
  shell(folder, `${withPackages(lines, folder)}\n${build}`);
  return { language, folder, load: words(folder, "load"), caller: words(folder, "caller") };
}

/** Puts there what the first line installs from npm, and answers the lines after it. */
export function withPackages(lines: string, folder: string): string {
  return lines.replace(/^npm install (.+)\n/, (_, names: string) => {
    for (const name of names.split(" ")) install(name, folder);
    return "";
  });
}

/** Runs lines of a page in a folder, and answers what they print. */
export function shell(
  folder: string,
  lines: string,
  env: Readonly<Record<string, string>> = {},
): string {
  const { status, stdout, stderr, error } = spawnSync("sh", ["-ec", lines], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, ...env },
    timeout: TIMEOUT_MS,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${lines}\nended with ${status}\n${stdout}${stderr}`);
  return stdout;
}

/** Puts there what npm would: of idmint's own package what `packages/proto/package.json` lists besides JavaScript. */
function install(name: string, folder: string): void {
  const modules = path.join(folder, "node_modules");
  const buf = path.join(root, "node_modules/@bufbuild/buf");
  if (name === "@idmint/proto") {
    const target = path.join(modules, name);
    mkdirSync(target, { recursive: true });
    for (const entry of ["proto", "buf.yaml"]) {
      cpSync(path.join(root, entry), path.join(target, entry), { recursive: true });
    }
    return;
  }
  const { version } = JSON.parse(readFileSync(path.join(buf, "package.json"), "utf8")) as {
    version: string;
  };
  if (name !== `@bufbuild/buf@${version}`) throw new Error(`the tests do not have ${name}`);
  mkdirSync(path.join(modules, ".bin"), { recursive: true });
  const program = path.join(root, "node_modules/.bin/buf");
  writeFileSync(path.join(modules, ".bin/buf"), `#!/bin/sh\nexec '${program}' "$@"\n`, {
    mode: 0o755,
  });
}
