// The Helm chart, rendered by Helm: the program on the PATH, or the library that Maven has.
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseAllDocuments } from "yaml";
import { programOf } from "../debian.ts";
import { prepared } from "../prepared.ts";

const repository = path.resolve(import.meta.dirname, "../../../..");
const tools = path.join(repository, "packages/testkit/helm");
export const CHART: string = path.join(repository, "deploy/helm/idmint");
/** The chart wants 1.30; Helm asks no cluster here. */
export const KUBERNETES = "1.33.0";
const COPY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
/** What the library leaves out is rendered under other names: hooks, and the notes. */
const HOOK = "helm.sh/hook";
const HIDDEN_HOOK = "idmint.test/hook";
const NOTES = `apiVersion: v1
kind: ConfigMap
metadata:
  name: notes
data:
  notes: |
{{ include (print $.Template.BasePath "/NOTES.txt") . | indent 4 }}
`;

/** A manifest, as far as the tests look at any. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: unknown;
  readonly data?: Readonly<Record<string, string>>;
}

/** What the chart makes of values. */
interface Rendered {
  /** As `helm template` prints them. */
  readonly manifests: readonly Manifest[];
  readonly notes: string;
}

export interface Rendering {
  /** The verdict of `helm lint --strict` on the default values, and its messages. */
  readonly lint: readonly string[];
  /** By the names of the values. */
  readonly rendered: ReadonlyMap<string, Rendered>;
  /** Why Helm refused values, by their names. */
  readonly refused: ReadonlyMap<string, string>;
}

/**
 * Renders the chart for the release `idmint` in the namespace `ids`. Values are files, or are written as JSON, which is YAML.
 * `helm` is the program; without one, the library does it.
 */
export function renderChart(
  values: ReadonlyMap<string, string | object>,
  helm: string | undefined = programOf("", ["helm"])?.command,
): Rendering {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-chart-"));
  try {
    const copy = visibleCopy(path.join(folder, "chart"));
    const out = path.join(folder, "out");
    mkdirSync(out);
    for (const [name, its] of values) {
      const text = typeof its === "string" ? readFileSync(its, "utf8") : JSON.stringify(its);
      writeFileSync(path.join(out, `${name}.values.yaml`), text);
    }
    if (helm === undefined) runLibrary(copy, out);
    else runProgram(helm, copy, out);
    return readAll(out, [...values.keys()]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A copy of the chart in which nothing is left out. */
function visibleCopy(copy: string): string {
  cpSync(CHART, copy, { recursive: true });
  const templates = path.join(copy, "templates");
  for (const name of readdirSync(templates, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".yaml")) continue;
    const file = path.join(templates, name);
    writeFileSync(file, readFileSync(file, "utf8").replaceAll(HOOK, HIDDEN_HOOK));
  }
  writeFileSync(path.join(templates, "notes.yaml"), NOTES);
  return copy;
}

/** `helm` of the machine. */
function runProgram(helm: string, copy: string, out: string): void {
  const lint = spawnSync(helm, ["lint", "--strict", CHART], { encoding: "utf8" });
  const verdict = lint.status === 0 ? "passed" : "failed";
  writeFileSync(path.join(out, "lint"), `${verdict}\n${lint.stdout}`);
  for (const file of readdirSync(out).filter((each) => each.endsWith(".values.yaml"))) {
    const name = file.replace(".values.yaml", "");
    const words = ["--namespace", "ids", "--kube-version", KUBERNETES, "--values", file];
    const ran = spawnSync(helm, ["template", "idmint", copy, ...words], {
      cwd: out,
      encoding: "utf8",
    });
    const [suffix, text] = ran.status === 0 ? ["yaml", ran.stdout] : ["error", ran.stderr];
    writeFileSync(path.join(out, `${name}.${suffix}`), text);
  }
}

function runLibrary(copy: string, out: string): void {
  const folder = prepared({
    name: "helm",
    isThere: (cache) => existsSync(path.join(cache, "whole")),
    script: `
rm -rf lib && mvn -q -B -f '${tools}/pom.xml' ${COPY_PLUGIN} -DoutputDirectory="$PWD/lib" >&2 && touch whole`,
    hint: "no Helm for the chart's tests: install helm, or a JDK of version 17 or newer and Maven",
  });
  const java = ["-cp", `${folder}/lib/*`, path.join(tools, "Render.java"), CHART, copy, out];
  const ran = spawnSync("java", [...java, KUBERNETES], { encoding: "utf8" });
  if (ran.status !== 0)
    throw new Error(`Helm's library ended: ${ran.error?.message ?? ran.stderr}`);
}

function readAll(out: string, names: readonly string[]): Rendering {
  const rendered = new Map<string, Rendered>();
  const refused = new Map<string, string>();
  for (const name of names) {
    const file = path.join(out, `${name}.yaml`);
    if (existsSync(file)) rendered.set(name, read(readFileSync(file, "utf8")));
    else refused.set(name, readFileSync(path.join(out, `${name}.error`), "utf8"));
  }
  return {
    lint: readFileSync(path.join(out, "lint"), "utf8").trim().split("\n"),
    rendered,
    refused,
  };
}

function isReal({ metadata }: Manifest): boolean {
  return metadata.name !== "notes";
}

function read(printed: string): Rendered {
  // Kubernetes reads YAML 1.1, in which 0440 is octal.
  const documents = parseAllDocuments(printed.replaceAll(HIDDEN_HOOK, HOOK), { version: "1.1" });
  const all = documents.map((document) => document.toJS() as Manifest | null);
  const manifests = all.filter((each) => each !== null);
  const notes = manifests.find((manifest) => !isReal(manifest))?.data?.["notes"] ?? "";
  const real = manifests.filter(isReal);
  return { manifests: real, notes };
}
