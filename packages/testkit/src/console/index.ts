// For tests of the console: one browser for a file, and a page of its own for each test.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { startChromium } from "./chromium.ts";
import { PICTURES, View, type ViewOptions } from "./view.ts";

export { CONTRAST } from "./axe.ts";
export { PICTURES, SIZES, THEMES } from "./view.ts";

/** Opens an empty page of a server, `http://HOST:PORT`, which ends with the test. The test fails unless the page stayed clean. */
export type OpenView = (origin: string, options?: ViewOptions) => Promise<View>;

/** A browser for all tests of a file. Call it at the top. */
export function useChromium(): OpenView {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(async () => browser?.close());
  return async (origin, options) => {
    if (browser === undefined) throw new Error("the browser is started before the first test");
    const view = await View.open(browser, origin, options);
    onTestFinished(async ({ task }) => {
      const name = `failed ${task.name}`.replaceAll(/\W+/g, "-").slice(0, 100);
      if (task.result?.state === "fail") {
        await view.picture(name);
        console.log(`${view.page.url()}: ${PICTURES}/${name}.png\n${view.guard.said.join("\n")}`);
      }
      await view.close();
      view.guard.assertNone();
    });
    return view;
  };
}
