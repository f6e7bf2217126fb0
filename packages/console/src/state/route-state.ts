/** What the URL says of a view: the page, the parts of its path, and its query. */
export interface Route<Page extends string = string> {
  /** The pattern of the page, such as `tags/:tag`; undefined: there is none at this address. */
  readonly page: Page | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

const BASE = "/console/";

/** Reads an address. Patterns are of literal parts and `:name`; the first one that fits has it. */
export function routeOf<Page extends string>(
  url: { readonly pathname: string; readonly search: string },
  pages: readonly Page[],
): Route<Page> {
  const isOurs = url.pathname.startsWith(BASE);
  const path = url.pathname.slice(BASE.length);
  const parts = path.split("/").filter((part) => part !== "");
  const query = Object.fromEntries(new URLSearchParams(url.search));
  for (const page of isOurs ? pages : []) {
    const params = paramsOf(page, parts);
    if (params !== undefined) return { page, params, query };
  }
  return { page: undefined, params: {}, query };
}

function paramsOf(page: string, parts: readonly string[]): Record<string, string> | undefined {
  const wanted = page.split("/").filter((part) => part !== "");
  if (wanted.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [at, want] of wanted.entries()) {
    const part = parts[at] ?? "";
    if (!want.startsWith(":")) {
      if (want !== part) return undefined;
      continue;
    }
    try {
      params[want.slice(1)] = decodeURIComponent(part);
    } catch {
      return undefined;
    }
  }
  return params;
}

/** The address of a view. A part of the query that is empty or undefined is left out. */
export function hrefOf(
  page: string,
  params: Readonly<Record<string, string>> = {},
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const path = page
    .split("/")
    .map((part) => (part.startsWith(":") ? encodeURIComponent(params[part.slice(1)] ?? "") : part))
    .join("/");
  const kept = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "",
  );
  const search = new URLSearchParams(kept).toString();
  return `${BASE}${path}${search === "" ? "" : `?${search}`}`;
}
