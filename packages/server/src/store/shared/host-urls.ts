// URLs of PostgreSQL, which may name several hosts as libpq does: postgres://user@a:5432,b:5432/database. No URL parser
// takes these, so each host gets a URL of its own.

/** What may follow `target_session_attrs=`: whichever is written, only a primary that takes writes is used. */
const FITTING: ReadonlySet<string> = new Set(["read-write", "primary"]);
/** What sslmode may be; others mean something else to libpq than to the driver, which takes all it does not know for verify-full. */
export const SSL_MODES = ["disable", "no-verify", "require", "verify-ca", "verify-full"] as const;
/** Most hosts of one URL. */
export const MAX_HOSTS = 8;
const PARTS = /^(postgres(?:ql)?:\/\/)([^@/?#]*@)?([^/?#]*)(.*)$/u;

/** One URL for each host, all different; undefined when the text cannot be meant. */
export function hostUrls(text: string): readonly [string, ...string[]] | undefined {
  const [, scheme, user = "", hosts = "", rest = ""] = PARTS.exec(text) ?? [];
  if (scheme === undefined) return undefined;
  const names = hosts.split(",");
  const urls = names.map((host) => `${scheme}${user}${host}${rest}`);
  if (urls.length > MAX_HOSTS || !urls.every((url) => URL.canParse(url))) return undefined;
  const parsed = urls.map((url) => new URL(url));
  const isOne = parsed.length === 1;
  // A parameter `host` is the folder of a Unix socket, which outranks what stands before the path.
  const isEach = parsed.every(
    ({ hostname, searchParams }) => hostname !== "" && !searchParams.has("host"),
  );
  if (!isOne && (!isEach || new Set(parsed.map(addressOf)).size < parsed.length)) return undefined;
  const wanted = parsed[0]?.searchParams.get("target_session_attrs") ?? "primary";
  if (!FITTING.has(wanted) || !hasKnownSslMode(parsed)) return undefined;
  const [first = "", ...others] = urls.map(withoutTarget);
  return [first, ...others];
}

function hasKnownSslMode(urls: readonly URL[]): boolean {
  return urls.every(({ searchParams }) => {
    const modes = searchParams.getAll("sslmode");
    // As libpq has them: then `prefer` asks for TLS and checks nothing.
    const isCompat = searchParams.get("uselibpqcompat") === "true";
    const known: readonly string[] = isCompat ? [...SSL_MODES, "prefer"] : SSL_MODES;
    return modes.length <= 1 && modes.every((mode) => known.includes(mode));
  });
}

/** The driver knows nothing of it. */
function withoutTarget(text: string): string {
  const url = new URL(text);
  if (!url.searchParams.has("target_session_attrs")) return text;
  url.searchParams.delete("target_session_attrs");
  return url.href;
}

/** Host and port of a URL of one host. */
export function addressOf(url: URL | string): string {
  const { hostname, port } = new URL(url);
  return `${hostname === "" ? "localhost" : hostname}:${port === "" ? "5432" : port}`;
}

/** The same URL, of one host or several, with a password. */
export function withPassword(text: string, password: string | undefined): string {
  if (password === undefined) return text;
  return text.replace(
    PARTS,
    (_, scheme: string, user: string | undefined, hosts: string, rest: string) => {
      const [name = ""] = (user ?? "@").slice(0, -1).split(":");
      return `${scheme}${name}:${encodeURIComponent(password)}@${hosts}${rest}`;
    },
  );
}
