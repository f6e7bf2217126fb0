// Writes docs/configuration.md from the server's table of options. A test fails when the committed file differs.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { configurationDocs } from "../packages/server/src/config/docs.ts";
import { root } from "./lib.ts";

writeFileSync(path.join(root, "docs", "configuration.md"), configurationDocs());
