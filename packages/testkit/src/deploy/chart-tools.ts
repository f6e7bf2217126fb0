// The programs that people use on charts. Their compilation takes minutes, so only the long tests have them.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { goModule, goProgram } from "./tools.ts";

export interface ChartTools {
  /** Paths of programs. */
  readonly helm: string;
  readonly kubectlValidate: string;
  /** Folder of the Prometheus Operator's definitions. */
  readonly definitions: string;
}

/** Compiles helm and kubectl-validate at the first call. */
export function chartTools(): ChartTools {
  const operator = goModule("github.com/prometheus-operator/prometheus-operator", "v0.85.0");
  return {
    helm: goProgram("helm", "helm.sh/helm/v3/cmd/helm", "v3.22.0"),
    kubectlValidate: goProgram("kubectl-validate", "sigs.k8s.io/kubectl-validate", "v0.0.4"),
    definitions: path.join(operator, "example/prometheus-operator-crd"),
  };
}

/** Runs one of them. Answers its exit code and what it said. */
export function runTool(
  program: string,
  ...args: readonly string[]
): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (error !== undefined) throw error;
  return { status, said: `${stdout}\n${stderr}` };
}
