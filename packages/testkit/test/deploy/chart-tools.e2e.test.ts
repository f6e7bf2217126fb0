// With IDMINT_LONG=1: helm itself lints and renders every example, and makes of it what the library makes that the other tests use;
// kubectl-validate takes it, the Prometheus Operator's part included. chart.e2e.test.ts has the short form.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { chartTools, runTool } from "../../src/deploy/chart-tools.ts";
import { CHART, KUBERNETES, type Manifest, renderChart } from "../../src/deploy/helm.ts";
import { isLong } from "../fleet-support.ts";

const COMPILING_MS = 1_200_000;
const examples = readdirSync(path.join(CHART, "examples")).map((file) =>
  path.join(CHART, "examples", file),
);

function yaml(manifests: readonly Manifest[]): string {
  return manifests.map((each) => `---\n${JSON.stringify(each)}\n`).join("");
}

test.runIf(isLong)(
  "helm and kubectl-validate say what the short tests say",
  () => {
    const { helm, kubectlValidate, definitions } = chartTools();
    const folder = mkdtempSync(path.join(tmpdir(), "idmint-chart-tools-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const values = new Map(examples.map((file) => [path.basename(file, ".yaml"), file]));
    const byProgram = renderChart(values, helm);
    const byLibrary = renderChart(values);
    expect(byProgram).toEqual({ ...byLibrary, lint: expect.anything() as unknown });
    expect([...byProgram.rendered.keys()]).toEqual([...values.keys()]);
    const validate = (name: string, text: string) => {
      const place = path.join(folder, name);
      mkdirSync(place);
      writeFileSync(path.join(place, "manifests.yaml"), text);
      const words = ["--version", "1.30", "--local-crds", definitions, place];
      return runTool(kubectlValidate, ...words);
    };
    for (const [name, file] of values) {
      expect(runTool(helm, "lint", "--strict", CHART, "--values", file).status).toBe(0);
      // As it is, with its hooks.
      const words = ["template", "idmint", CHART, "--kube-version", KUBERNETES, "--values", file];
      const printed = runTool(helm, ...words);
      expect([printed.status, printed.said]).toEqual([0, expect.stringContaining("helm.sh/hook")]);
      const manifests = byProgram.rendered.get(name)?.manifests ?? [];
      expect(printed.said.match(/^kind: /gm)).toHaveLength(manifests.length);
      expect(validate(name, yaml(manifests)), name).toMatchObject({ status: 0 });
    }
    const monitored = yaml(byProgram.rendered.get("three-zones")?.manifests ?? []);
    for (const [found, other] of [
      ['"terminationGracePeriodSeconds"', '"gracePeriodSeconds"'],
      ['"interval":"15s"', '"interval":15'],
    ] as const) {
      expect(monitored).toContain(found);
      expect(
        validate(other.replaceAll(/\W/g, ""), monitored.replace(found, other)).status,
      ).not.toBe(0);
    }
  },
  COMPILING_MS,
);
