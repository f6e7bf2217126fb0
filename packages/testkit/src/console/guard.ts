// What must not happen in a page, whatever a test looks at: whoever opens a page has it guarded.
import type { BrowserContext, Page } from "playwright-core";

/**
 * Collects what is wrong with a page: errors and warnings of its console, among them violations of its
 * Content-Security-Policy; errors that nobody caught; requests to another origin; dialogs and windows that it opens.
 */
export class Guard {
  /** Every address that was asked for. */
  readonly asked: string[] = [];
  /** All that the page wrote to its console. */
  readonly said: string[] = [];
  readonly #origin: string;
  readonly #faults: string[] = [];
  readonly #allowed: RegExp[] = [];

  constructor(context: BrowserContext, page: Page, origin: string) {
    this.#origin = origin;
    page.on("console", (message) => {
      const text = `${message.type()}: ${message.text()} (${message.location().url})`;
      this.said.push(text);
      if (["error", "warning", "assert"].includes(message.type())) this.#note(text);
    });
    page.on("pageerror", (error) => this.#note(`not caught: ${error.stack ?? error.message}`));
    page.on("dialog", (dialog) => {
      this.#note(`a dialog of the browser: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("crash", () => this.#note("the page crashed"));
    context.on("request", (request) => this.#look(request.url()));
    page.on("websocket", (socket) => this.#look(socket.url()));
    context.on("page", (other) => {
      if (other !== page) this.#note(`another window: ${other.url()}`);
    });
  }

  /** Takes what a test brings about, such as the browser's own line for an answer with an error. */
  allow(...patterns: readonly RegExp[]): void {
    this.#allowed.push(...patterns);
  }

  /** What is wrong, without what was allowed at any time. */
  get faults(): readonly string[] {
    return this.#faults.filter((fault) => this.#allowed.every((pattern) => !pattern.test(fault)));
  }

  assertNone(): void {
    if (this.faults.length > 0)
      throw new Error(`the page is not clean:\n${this.faults.join("\n")}`);
  }

  #note(fault: string): void {
    this.#faults.push(fault);
  }

  #look(address: string): void {
    this.asked.push(address);
    const { origin, protocol } = new URL(address);
    const stays = protocol === "data:" || protocol === "blob:" || origin === this.#origin;
    if (!stays) this.#note(`asked another origin: ${address}`);
  }
}
