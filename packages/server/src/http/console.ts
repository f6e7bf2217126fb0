import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { HttpRefusal } from "./answers.ts";
import type { HttpAnswer, HttpRequest, Route } from "./route.ts";

/** Where the build puts the console, of which the package carries all: beside `src` and `dist`. */
const BUILT: string = path.resolve(import.meta.dirname, "../../console");
const BASE = "/console/";
/** What people type. */
const ENTRANCES: readonly string[] = ["/", "/console"];
const ASSETS = "/console/assets/";
const INDEX = "/console/index.html";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".md": "text/plain; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Nothing inline, nothing from anywhere else, no frames, and no form that the browser sends by itself. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const SECURITY: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** The forms in which the build left each file, the smallest first. */
const ENCODINGS = [
  { name: "br", ending: ".br" },
  { name: "gzip", ending: ".gz" },
] as const;

/** One file in one form. */
interface Form {
  readonly encoding: string | undefined;
  readonly body: Uint8Array;
  readonly etag: string;
}

interface ConsoleFile {
  readonly type: string;
  readonly cache: string;
  /** The file as it is comes last. */
  readonly forms: readonly Form[];
}

/** Whether this package has the console: a clone that was never built has none. */
export function hasConsole(folder: string = BUILT): boolean {
  return existsSync(path.join(folder, "index.html"));
}

/**
 * The console below /console/. All files are in memory from the start on, so no request reads a disk, and none names a file:
 * what is not in the table is not there.
 */
export function consoleRoute(folder: string = BUILT): Route {
  const files = hasConsole(folder) ? filesIn(folder) : undefined;
  return {
    matches: (asked) => ENTRANCES.includes(asked) || asked.startsWith(BASE),
    methods: ["GET"],
    audience: "people",
    answer: (request) => {
      if (files === undefined) {
        const why = "the console is not built; run npx pnpm@10 build in the clone";
        throw new HttpRefusal(404, "not_found", why);
      }
      if (ENTRANCES.includes(request.path)) return moved();
      return answerOf(files, request);
    },
  };
}

/** Without a host, so that it holds behind a proxy that has another name. Not for ever: another release may do otherwise. */
function moved(): HttpAnswer {
  return { status: 307, headers: { ...SECURITY, location: BASE }, body: "" };
}

/** Every address below /console/ that is no file is a view: the page reads it out of its own URL. */
function answerOf(files: ReadonlyMap<string, ConsoleFile>, request: HttpRequest): HttpAnswer {
  const file = files.get(request.path) ?? pageFor(files, request.path);
  if (file === undefined) throw new HttpRefusal(404, "not_found", "the console has no such file");
  const form = formFor(file, request.headers["accept-encoding"]);
  const headers = {
    ...SECURITY,
    "cache-control": file.cache,
    etag: form.etag,
    vary: "accept-encoding",
  };
  if (isKnown(request.headers["if-none-match"], form.etag)) {
    return { status: 304, headers, body: "" };
  }
  const encoded = form.encoding === undefined ? {} : { "content-encoding": form.encoding };
  return {
    status: 200,
    headers: { ...headers, ...encoded, "content-type": file.type },
    body: form.body,
  };
}

function pageFor(files: ReadonlyMap<string, ConsoleFile>, asked: string): ConsoleFile | undefined {
  // An asset of another release: a page instead of a script would be an error that nobody understands.
  return asked.startsWith(ASSETS) ? undefined : files.get(INDEX);
}

function filesIn(folder: string): ReadonlyMap<string, ConsoleFile> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = names.flatMap((name) => {
    const type = TYPES[path.extname(name)];
    if (type === undefined) return [];
    const place = `${BASE}${name.split(path.sep).join("/")}`;
    // The name of an asset holds the hash of its text, so it never changes.
    const cache = place.startsWith(ASSETS) ? "public, max-age=31536000, immutable" : "no-cache";
    return [[place, { type, cache, forms: formsOf(path.join(folder, name)) }] as const];
  });
  return new Map(files);
}

function formsOf(file: string): readonly Form[] {
  const body = readFileSync(file);
  const hash = createHash("sha256").update(body).digest("base64url").slice(0, 22);
  const compressed = ENCODINGS.flatMap(({ name, ending }) =>
    existsSync(file + ending)
      ? [{ encoding: name, body: readFileSync(file + ending), etag: `"${hash}-${name}"` }]
      : [],
  );
  return [...compressed, { encoding: undefined, body, etag: `"${hash}"` }];
}

function formFor({ forms }: ConsoleFile, accepted: string | undefined): Form {
  const wanted = encodingsIn(accepted ?? "");
  const form = forms.find(({ encoding }) => encoding === undefined || wanted.has(encoding));
  if (form === undefined) throw new Error("a file has no form");
  return form;
}

/** What a header names, without what it refuses by `q=0`. Nothing is understood by `*`: then the file goes as it is. */
function encodingsIn(header: string): ReadonlySet<string> {
  const named = header.split(",").flatMap((part) => {
    const [name = "", ...settings] = part
      .toLowerCase()
      .split(";")
      .map((text) => text.trim());
    const isRefused = settings.some((setting) => /^q=0(?:\.0*)?$/.test(setting));
    return isRefused ? [] : [name];
  });
  return new Set(named);
}

function isKnown(header: string | undefined, etag: string): boolean {
  const named = (header ?? "").split(",").map((text) => text.trim().replace(/^W\//, ""));
  return named.includes(etag) || named.includes("*");
}
