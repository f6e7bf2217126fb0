import { isIP } from "node:net";
import type { IncomingHttpHeaders } from "node:http";
import { HttpRefusal } from "./answers.ts";

const HOST = /^(?:\[([0-9a-f:.%]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/;
/** Headers `host` that were found right; callers have few. */
const MAX_KNOWN = 256;

/**
 * Whose requests are answered. A browser sends whatever a page asks for, from wherever the page came.
 *
 * INVARIANT: no page of another origin can call a method or read an answer. It cannot ask under its own name, which it may
 * have given this server's address (DNS rebinding), since such names are not believed; and what it asks under a right name is
 * told by `origin` and `sec-fetch-site`, which no page can change. Callers that are no browsers send neither.
 */
export class Hosts {
  readonly #names: ReadonlySet<string>;
  readonly #domains: readonly string[];
  readonly #known = new Set<string>();

  /** As in the option http.hosts. */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.filter((name) => !name.startsWith("*.")));
    this.#domains = names.filter((name) => name.startsWith("*.")).map((name) => name.slice(1));
  }

  /** Refuses a request for a host that is not this one. */
  assertHost({ host = "" }: IncomingHttpHeaders): void {
    if (this.#known.has(host)) return;
    if (!this.#isOurs(host.toLowerCase())) {
      const text = `"${host.slice(0, 100)}" is not known as a name of this server; if it is one, add it to the option http.hosts`;
      throw new HttpRefusal(421, "permission_denied", text);
    }
    if (this.#known.size < MAX_KNOWN) this.#known.add(host);
  }

  #isOurs(host: string): boolean {
    const [, six, other = ""] = HOST.exec(host) ?? [];
    if (six !== undefined) return isIP(six) === 6;
    const name = other.endsWith(".") ? other.slice(0, -1) : other;
    if (name === "") return false;
    return (
      isIP(name) === 4 ||
      name === "localhost" ||
      name.endsWith(".localhost") ||
      this.#names.has("*") ||
      this.#names.has(name) ||
      this.#domains.some((domain) => name.endsWith(domain))
    );
  }
}

/** Refuses what a page of another origin asks for. `isPage`: people may come here by a link. */
export function assertSameOrigin(headers: IncomingHttpHeaders, isPage: boolean): void {
  const { origin, host = "" } = headers;
  if (origin !== undefined && !isOriginOf(origin, host)) throw fromElsewhere();
  const site = headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin" || site === "none") return;
  const isLink =
    headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
  if (!isPage || !isLink) throw fromElsewhere();
}

/** A proxy may have taken TLS away, so the scheme does not tell. */
function isOriginOf(origin: string, host: string): boolean {
  const [, its = ""] = /^https?:\/\/(.+)$/i.exec(origin) ?? [];
  return its !== "" && its.toLowerCase() === host.toLowerCase();
}

function fromElsewhere(): HttpRefusal {
  const text =
    "this request comes from a page of another origin, which may not call this server; a proxy must leave the header Host as it is";
  return new HttpRefusal(403, "permission_denied", text);
}
