// Writes what is made from tables: docs/configuration.md from the server's options, docs/kinds.md from the kinds, docs/metrics.md
// from the table of metrics, what is shown of docs/proof/, the dashboards of deploy/grafana, and the schema of the Helm chart's values.
// `--check` fails when the committed files differ. Tests run it.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { kindDocs } from "../packages/cli/src/text/kind-docs.ts";
import { configurationDocs } from "../packages/server/src/config/docs.ts";
import { metricsDocs } from "../packages/server/src/telemetry/metrics/docs.ts";
import { dashboardFiles } from "../packages/testkit/src/deploy/dashboards.ts";
import { proofPage, readmeWithProof } from "../packages/testkit/src/proof/page.ts";
import { chartFiles } from "./chart.ts";
import { root } from "./lib.ts";

const files: readonly (readonly [file: string, text: string])[] = [
  ["docs/configuration.md", configurationDocs()],
  ["docs/kinds.md", kindDocs()],
  ["docs/metrics.md", metricsDocs()],
  ["docs/proof.md", proofPage()],
  ["README.md", readmeWithProof()],
  ...[...dashboardFiles()].map(
    ([name, text]) => [path.join("deploy/grafana/dashboards", name), text] as const,
  ),
  ...chartFiles(),
];
for (const [name, text] of files) {
  const file = path.join(root, name);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error(`out of date, run \`pnpm generate\`: ${name}`);
    process.exitCode = 1;
  }
}
