// What is in the published packages, as CycloneDX: `pnpm sbom` writes it, and so does the build. With --check it only looks:
// at the licences, at versions that must not come back, and whether the document is valid.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Enums, Models, Serialize, Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { type Dependency, publishedDependencies } from "./dependencies.ts";
import { root } from "./lib.ts";

/** Licences that whoever uses idmint need not ask a lawyer about. */
const LICENCES: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "ISC",
  "MIT",
]);
/** Below this version one malformed compressed message ends the process. */
const LEAST_GRPC_JS = [1, 14, 4];
const TARGET = path.join(root, "dist", "idmint.cdx.json");

const dependencies = publishedDependencies();
const text = sbom();
const faults = [...licenceFaults(), ...versionFaults(), ...(await formFaults())];
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
else if (!process.argv.includes("--check")) {
  mkdirSync(path.dirname(TARGET), { recursive: true });
  writeFileSync(TARGET, text);
  console.log(`${dependencies.size} packages: ${path.relative(root, TARGET)}`);
}

/** The same text for the same lockfile: no time, no random number. */
function sbom(): string {
  const bom = new Models.Bom();
  const components = new Map([...dependencies].map(([id, each]) => [id, componentOf(each)]));
  for (const [id, component] of components) {
    for (const need of dependencies.get(id)?.needs ?? []) {
      const ref = components.get(need)?.bomRef;
      if (ref !== undefined) component.dependencies.add(ref);
    }
    if (dependencies.get(id)?.name === "idmint") bom.metadata.component = component;
    else bom.components.add(component);
  }
  const factory = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  const serializer = new Serialize.JsonSerializer(factory);
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`;
}

function componentOf({ name, version, license, integrity }: Dependency): Models.Component {
  const isScoped = name.startsWith("@");
  const [scope, bare = name] = isScoped ? name.split("/") : [undefined, name];
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const type = name === "idmint" ? Enums.ComponentType.Application : Enums.ComponentType.Library;
  const component = new Models.Component(type, bare, { group: scope, version, purl, bomRef: purl });
  if (license !== undefined) component.licenses.add(licenceOf(license));
  if (integrity !== undefined) {
    const [, digest = ""] = integrity.split("-");
    const hash = Buffer.from(digest, "base64").toString("hex");
    component.hashes.set(Enums.HashAlgorithm["SHA-512"], hash);
  }
  return component;
}

function licenceOf(license: string): Models.SpdxLicense | Models.LicenseExpression {
  return license.includes(" ")
    ? new Models.LicenseExpression(license)
    : new Models.SpdxLicense(license);
}

/** All parts of "A AND B" must be allowed; of "A OR B" too, which so far nobody needs otherwise. */
function licenceFaults(): readonly string[] {
  return [...dependencies.values()].flatMap(({ id, license }) => {
    const parts = license?.replaceAll(/[()]/g, "").split(/ AND | OR /) ?? ["none"];
    return parts.every((part) => LICENCES.has(part))
      ? []
      : [`${id}: the licence ${license ?? "none"} is not one that scripts/sbom.ts allows`];
  });
}

function versionFaults(): readonly string[] {
  return [...dependencies.values()]
    .filter(({ name, version }) => name === "@grpc/grpc-js" && isBelow(version, LEAST_GRPC_JS))
    .map(
      ({ id }) => `${id}: below ${LEAST_GRPC_JS.join(".")} a malformed message ends the process`,
    );
}

function isBelow(version: string, least: readonly number[]): boolean {
  const parts = version.split(".").map((part) => Number.parseInt(part, 10));
  for (const [at, wanted] of least.entries()) {
    const part = parts[at] ?? 0;
    if (part !== wanted) return part < wanted;
  }
  return false;
}

async function formFaults(): Promise<readonly string[]> {
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
  const found: unknown = await validator.validate(text);
  if (found === null) return [];
  return [`the document is not valid CycloneDX: ${JSON.stringify(found)}`];
}
