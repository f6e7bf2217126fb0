import type { Mutant } from "./mutant.ts";

const pages = "packages/console/src/pages";
const auditTests = ["packages/console/test/pages/audit.test.ts"];
const tokenTests = ["packages/console/test/pages/tokens.test.ts"];
const flows = ["packages/testkit/test/console/console.e2e.test.ts"];
const harness = ["packages/testkit/test/console/harness.e2e.test.ts"];

/** The pages of the audit trail and of tokens, what every page must not do, and what looks at it. */
export const consolePagesMutants: readonly Mutant[] = [
  {
    name: "console pages: a name that every object has is no name of a difference",
    file: `${pages}/audit/differences.ts`,
    find: "else values.set(name, shown(value));",
    replace: "else if (!(name in {})) values.set(name, shown(value));",
    tests: auditTests,
  },
  {
    name: "console pages: refusals of one reason are looked for among changes",
    file: `${pages}/audit/filters.ts`,
    find: 'outcome === "change" ? "CHANGE" : "REFUSAL"',
    replace: 'outcome === "refusal" ? "REFUSAL" : "CHANGE"',
    tests: auditTests,
  },
  {
    name: "console pages: a token that was replaced ends soon",
    file: `${pages}/tokens/expiry.ts`,
    find: "isLate && !isReplaced(token, all)",
    replace: "isLate",
    tests: tokenTests,
  },
  {
    name: "console pages: rights are sent that the server refuses",
    file: `${pages}/tokens/token-form.ts`,
    find: "const PATTERN = /^(?:\\*|[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\\*?)$/;",
    replace: "const PATTERN = /^[A-Za-z0-9._:*-]+$/;",
    tests: tokenTests,
  },
  {
    name: "console pages: a secret stays in a page that is kept for the way back",
    file: `${pages}/tokens/make-dialog.tsx`,
    find: 'addEventListener("pagehide", onClose);',
    replace: 'addEventListener("freeze", onClose);',
    tests: flows,
    only: "a token is made",
  },
  {
    name: "console pages: whoever may only look is shown the form of a tag",
    file: `${pages}/tags/new-tag.tsx`,
    find: 'rights.every(({ role }) => role !== "admin") === true',
    replace: "rights.length === 0",
    tests: flows,
    only: "who may only look",
  },
  {
    name: "console pages: the other theme is seen for a moment",
    file: "packages/console/public/theme.js",
    find: 'localStorage.getItem("idmint.theme")',
    replace: 'localStorage.getItem("idmint.colours")',
    tests: flows,
    only: "what was chosen",
  },
  {
    name: "console pages: a page may ask any other origin unseen",
    file: "packages/testkit/src/console/guard.ts",
    find: "if (!stays) this.#note(",
    replace: 'if (protocol === "ftp:") this.#note(',
    tests: harness,
  },
  {
    name: "console pages: axe looks at nothing",
    file: "packages/testkit/src/console/axe.ts",
    find: "if (violations.length === 0) return;",
    replace: "if (violations.length < 50) return;",
    tests: harness,
  },
];
