// Writes the docs that are made from tables: docs/configuration.md from the server's options, docs/kinds.md from the kinds,
// docs/metrics.md from the table of metrics. The dashboards of deploy/grafana too.
// Tests fail when the committed files differ.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { kindDocs } from "../packages/cli/src/text/kind-docs.ts";
import { configurationDocs } from "../packages/server/src/config/docs.ts";
import { metricsDocs } from "../packages/server/src/telemetry/metrics/docs.ts";
import { dashboardFiles } from "../packages/testkit/src/deploy/dashboards.ts";
import { root } from "./lib.ts";

writeFileSync(path.join(root, "docs", "configuration.md"), configurationDocs());
writeFileSync(path.join(root, "docs", "kinds.md"), kindDocs());
writeFileSync(path.join(root, "docs", "metrics.md"), metricsDocs());
for (const [name, text] of dashboardFiles())
  writeFileSync(path.join(root, "deploy", "grafana", "dashboards", name), text);
