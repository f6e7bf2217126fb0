// axe-core on a page: whoever cannot see it, or has no mouse, can use it too.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults, NodeResult, Result } from "axe-core";
import type { Page } from "playwright-core";

/** All rules of levels A and AA. */
const LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"];
/** What a theme may break. */
export const CONTRAST: readonly string[] = ["color-contrast"];

let source: string | undefined;

/** Fails with every finding: the rule, what it wants, and where it is broken. */
export async function assertAccessible(
  page: Page,
  what: string,
  rules: readonly string[],
): Promise<void> {
  source ??= readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  // By the debugger's protocol, so the page's Content-Security-Policy stays as it is.
  if (!(await page.evaluate<boolean>(`typeof axe === "object"`))) await page.evaluate(source);
  const runOnly =
    rules.length > 0 ? { type: "rule", values: rules } : { type: "tag", values: LEVELS };
  const options = JSON.stringify({ runOnly, resultTypes: ["violations"] });
  const { violations, passes } = await page.evaluate<AxeResults>(`axe.run(document, ${options})`);
  // A page on which no rule could be tried would pass anything.
  if (passes.length === 0) throw new Error(`${what}: axe found nothing to look at`);
  if (violations.length === 0) return;
  throw new Error(`${what}, ${page.url()}: axe finds\n${violations.map(describe).join("\n")}`);
}

function describe({ id, impact, help, nodes }: Result): string {
  return [`${id} (${impact}): ${help}`, ...nodes.map(describeNode)].join("\n");
}

function describeNode({ target, html, failureSummary }: NodeResult): string {
  const why = failureSummary?.replaceAll(/\s*\n\s*/g, "; ") ?? "";
  return `  ${target.join(" ")}: ${html.slice(0, 200)}\n    ${why}`;
}
