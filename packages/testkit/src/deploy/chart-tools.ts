// The programs that people use on charts. Their compilation takes minutes, so only the long tests have them.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { prepared } from "../prepared.ts";

export interface ChartTools {
  /** Paths of programs. */
  readonly helm: string;
  readonly kubectlValidate: string;
  /** Folder of the Prometheus Operator's definitions. */
  readonly definitions: string;
}

/** Compiles helm and kubectl-validate at the first call. */
export function chartTools(): ChartTools {
  const folder = prepared({
    name: "chart-tools",
    isThere: (cache) => existsSync(path.join(cache, "whole")),
    script: `
export GOBIN="$PWD/bin" GOFLAGS=-mod=mod
go install helm.sh/helm/v3/cmd/helm@v3.22.0 && go install sigs.k8s.io/kubectl-validate@v0.0.4 || exit
go mod download -json github.com/prometheus-operator/prometheus-operator@v0.85.0 > operator.json || exit
operator=$(sed -n 's/.*"Dir": "\\(.*\\)".*/\\1/p' operator.json)
rm -rf definitions && mkdir definitions && cp "$operator"/example/prometheus-operator-crd/*servicemonitors.yaml definitions && touch whole`,
    hint: "no helm and kubectl-validate for the chart's long tests: install Go 1.24 or newer",
  });
  return {
    helm: path.join(folder, "bin/helm"),
    kubectlValidate: path.join(folder, "bin/kubectl-validate"),
    definitions: path.join(folder, "definitions"),
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
