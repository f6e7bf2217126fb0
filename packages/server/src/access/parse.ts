import { type FieldViolation, IdmintError, invalidFields, principalViolation } from "@idmint/core";
import { type AccessFile, assertRights, isTokenId, type Right, ROLES } from "@idmint/core/server";
import { yamlOf } from "../config/yaml.ts";

const MAX_PRINCIPALS = 10_000;
const KEYS: ReadonlySet<string> = new Set([...ROLES, "certificates", "tokens"]);

type Map_ = Readonly<Record<string, unknown>>;
type Found = { -readonly [Key in keyof AccessFile]: AccessFile[Key][number][] };

/** Reads what a file says of principals. Throws INVALID_ARGUMENT that names every place that is wrong, and shows no value. */
export function parseAccess(text: string): AccessFile {
  const yaml = yamlOf(text);
  if ("fault" in yaml) throw invalidFields([{ field: "access.file", description: yaml.fault }]);
  const root = yaml.value;
  const violations: FieldViolation[] = [];
  const found: Found = { tokens: [], certificates: [] };
  const principals = isMap(root) && isMap(root["principals"]) ? root["principals"] : undefined;
  if (principals === undefined || Object.keys(root as Map_).length > 1) {
    const description = "must hold one map, `principals`, by their names";
    throw invalidFields([{ field: "access.file", description }]);
  }
  const all = Object.entries(principals);
  if (all.length > MAX_PRINCIPALS) {
    violations.push({ field: "principals", description: `must be at most ${MAX_PRINCIPALS}` });
  }
  for (const [name, value] of all.slice(0, MAX_PRINCIPALS)) {
    violations.push(...readPrincipal(name, value, found));
  }
  violations.push(...repeated(found));
  if (violations.length > 0) throw invalidFields(violations);
  return found;
}

function readPrincipal(name: string, value: unknown, found: Found): readonly FieldViolation[] {
  const at = `principals.${name}`;
  const wrongName = principalViolation(at, name);
  if (wrongName !== undefined) return [wrongName];
  if (!isMap(value)) return [{ field: at, description: "must be a map" }];
  const violations: FieldViolation[] = [];
  for (const key of Object.keys(value)) {
    if (KEYS.has(key)) continue;
    const description = `is not one of ${[...KEYS].join(", ")}`;
    violations.push({ field: `${at}.${key}`, description });
  }
  const texts = (key: string): readonly string[] => {
    const list: unknown = value[key] ?? [];
    if (Array.isArray(list) && list.every((one) => typeof one === "string" && one !== "")) {
      return list as readonly string[];
    }
    violations.push({ field: `${at}.${key}`, description: "must be a list of texts" });
    return [];
  };
  const rights = ROLES.flatMap((role) => texts(role).map((tags): Right => ({ role, tags })));
  violations.push(...violationsOf(() => assertRights(rights, at)));
  const names = texts("certificates");
  if (names.length > 0) found.certificates.push({ principal: name, rights, names });
  const tokens: unknown = value["tokens"] ?? [];
  if (!Array.isArray(tokens)) {
    return [...violations, { field: `${at}.tokens`, description: "must be a list" }];
  }
  tokens.forEach((token: unknown, index) => {
    const field = `${at}.tokens[${index}]`;
    const read = isMap(token) ? readToken(token) : undefined;
    if (read === undefined) {
      const description =
        "must have `id` (16 hexadecimal digits), `sha256` (64, of the part of the token after the second _) and `expires` (a time)";
      violations.push({ field, description });
    } else found.tokens.push({ ...read, principal: name, rights, createdAtMs: 0 });
  });
  return violations;
}

function readToken({
  id,
  sha256: hash,
  expires,
  ...others
}: Map_): { id: string; hash: string; expiresAtMs: number } | undefined {
  if (Object.keys(others).length > 0 || typeof id !== "string" || typeof hash !== "string") {
    return undefined;
  }
  const expiresAtMs = typeof expires === "string" ? Date.parse(expires) : Number.NaN;
  const isRight = isTokenId(id) && /^[0-9a-f]{64}$/.test(hash) && !Number.isNaN(expiresAtMs);
  return isRight ? { id, hash, expiresAtMs } : undefined;
}

/** A name or an id that two principals have proves neither. */
function repeated({ tokens, certificates }: Found): readonly FieldViolation[] {
  const seen = new Set<string>();
  const all = [
    ...tokens.map(({ principal, id }) => ({ principal, what: `token ${id}` })),
    ...certificates.flatMap(({ principal, names }) =>
      names.map((name) => ({ principal, what: `certificate ${name}` })),
    ),
  ];
  return all.flatMap(({ principal, what }) => {
    const isSecond = seen.has(what);
    seen.add(what);
    const description = `must not repeat ${what}`;
    return isSecond ? [{ field: `principals.${principal}`, description }] : [];
  });
}

function violationsOf(check: () => void): readonly FieldViolation[] {
  try {
    check();
    return [];
  } catch (thrown) {
    return IdmintError.from(thrown).violations;
  }
}

function isMap(value: unknown): value is Map_ {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
