// A page of the console as somebody sees it, in a browser context of its own.
import { mkdirSync } from "node:fs";
import path from "node:path";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { until } from "../fleet/until.ts";
import { assertAccessible } from "./axe.ts";
import { Guard } from "./guard.ts";

export const THEMES = ["light", "dark"] as const;

/** Pictures of every page, for people: git ignores them. */
export const PICTURES: string = path.resolve(import.meta.dirname, "../../../console/pictures");

/** In CSS pixels: a desk's window, and a phone. */
export const SIZES = {
  desk: { width: 1_280, height: 800 },
  phone: { width: 390, height: 844 },
} as const;
/** So long that only what hangs exceeds it. */
const PATIENCE_MS = 30_000;
const FITTING_MS = 5_000;
const STORAGES = `JSON.stringify([Object.entries(sessionStorage), Object.entries(localStorage), document.cookie, history.state])`;
const TYPED = `[...document.querySelectorAll("input, textarea")].map(({ value }) => value).join("\\n")`;

/** Whose browser it is. */
export interface ViewOptions {
  /** What the system prefers. Default: light. */
  readonly theme?: (typeof THEMES)[number];
  /** Default: desk. */
  readonly size?: keyof typeof SIZES;
  /** The browser's language. Default: en-US. */
  readonly locale?: string;
  /** Default: UTC. */
  readonly timeZone?: string;
}

/** One page, guarded from its first request on. Close it. */
export class View {
  readonly page: Page;
  readonly guard: Guard;
  /** Of the server: `http://127.0.0.1:PORT`. */
  readonly origin: string;
  readonly #context: BrowserContext;

  private constructor(context: BrowserContext, page: Page, origin: string) {
    this.#context = context;
    this.page = page;
    this.origin = origin;
    this.guard = new Guard(context, page, origin);
  }

  /** An empty page of somebody who was never there: no storage, no cookies, no history. */
  static async open(
    browser: Browser,
    origin: string,
    { theme = "light", size = "desk", locale = "en-US", timeZone = "UTC" }: ViewOptions = {},
  ): Promise<View> {
    const context = await browser.newContext({
      baseURL: origin,
      colorScheme: theme,
      viewport: SIZES[size],
      hasTouch: size === "phone",
      locale,
      timezoneId: timeZone,
      // What moves would be judged and pictured half-way.
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(PATIENCE_MS);
    return new View(context, await context.newPage(), origin);
  }

  /** Goes to an address below the origin, as somebody who types it. */
  async goto(address: string): Promise<void> {
    await this.page.goto(address, { waitUntil: "domcontentloaded" });
  }

  /** Where the page is, without the origin. */
  get address(): string {
    return this.page.url().replace(this.origin, "");
  }

  /** Waits until somebody sees it. */
  async sees(what: string | RegExp | Locator, withinMs: number = PATIENCE_MS): Promise<Locator> {
    const isLocator = typeof what === "object" && !(what instanceof RegExp);
    const found = (isLocator ? what : this.page.getByText(what)).filter({ visible: true }).first();
    await until(`seen: ${String(what)}`, () => found.isVisible(), { withinMs });
    return found;
  }

  /** Waits until nobody sees it any more. */
  async misses(what: string | RegExp | Locator, withinMs: number = PATIENCE_MS): Promise<void> {
    const isLocator = typeof what === "object" && !(what instanceof RegExp);
    const all = (isLocator ? what : this.page.getByText(what)).filter({ visible: true });
    const isGone = async (): Promise<boolean> => (await all.count()) === 0;
    await until(`not seen: ${String(what)}`, isGone, { withinMs });
  }

  /** Fails with whatever axe finds on the page as it is. `rules`: only by these; default: by all. */
  async assertAccessible(what: string, rules: readonly string[] = []): Promise<void> {
    await assertAccessible(this.page, what, rules);
  }

  /** Fails when the page is wider than the window, so that somebody would have to scroll it sideways. */
  async assertFits(what: string): Promise<void> {
    let wider: readonly string[] = [];
    const fits = async (): Promise<boolean> => {
      wider = await this.page.evaluate<string[]>(WIDER);
      return wider.length === 0;
    };
    try {
      // What is drawn by a script follows the window a moment later.
      await until(`${what} fits`, fits, { withinMs: FITTING_MS });
    } catch {
      throw new Error(`${what} is wider than its window: ${wider.join(", ")}`);
    }
  }

  /** Writes a picture of the whole page into PICTURES. */
  async picture(name: string): Promise<void> {
    mkdirSync(PICTURES, { recursive: true });
    await this.page.screenshot({ path: path.join(PICTURES, `${name}.png`), fullPage: true });
  }

  /** Everywhere that a page leaves something: its source, what is typed in, its storages, its addresses, what it said. */
  async traces(): Promise<ReadonlyMap<string, string>> {
    return new Map([
      ["source", await this.page.content()],
      ["fields", await this.page.evaluate<string>(TYPED)],
      ["storages", await this.page.evaluate<string>(STORAGES)],
      ["storages on disk", JSON.stringify(await this.#context.storageState({ indexedDB: true }))],
      ["address", this.page.url()],
      ["asked", this.guard.asked.join("\n")],
      ["said", this.guard.said.join("\n")],
    ]);
  }

  async close(): Promise<void> {
    await this.#context.close();
  }
}

/** What sticks out of the window, unless something around it scrolls by itself. */
const WIDER = `(() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  const sticking = [...document.body.querySelectorAll("*")].filter((element) => {
    if (element.getBoundingClientRect().right <= root.clientWidth + 1) return false;
    for (let at = element.parentElement; at !== null; at = at.parentElement) {
      if (at !== document.body && at !== root && /auto|scroll|hidden/.test(getComputedStyle(at).overflowX)) return false;
    }
    return true;
  });
  return ["scrollWidth " + root.scrollWidth, ...sticking.slice(0, 5).map((one) => one.outerHTML.slice(0, 120))];
})()`;
