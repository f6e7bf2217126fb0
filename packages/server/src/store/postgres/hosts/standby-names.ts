/** What idmint takes for the name of a standby, in lower case: PostgreSQL compares them without regard to case. */
const NAME = /^[a-z0-9_$.-]{1,63}$/;
const COUNTED = /^(?:(?:first|any)\s+|(?=\d))(\d+)\s*\((.*)\)$/;

/**
 * The standbys that all have to confirm a commit under a value of synchronous_standby_names, in order; none where fewer
 * than those named would do, or where anybody would.
 */
export function requiredStandbys(setting: string): readonly string[] {
  const text = setting.trim().toLowerCase();
  const [, digits, inner] = COUNTED.exec(text) ?? [];
  const names = (inner ?? text).split(",").map((name) => name.trim().replace(/^"(.*)"$/, "$1"));
  if (Number(digits ?? 1) !== names.length || new Set(names).size !== names.length) return [];
  return names.every((name) => NAME.test(name)) ? names.toSorted() : [];
}

/** As the column `standbys` of the store has them. */
export function standbysText(names: readonly string[]): string {
  return names.join(",");
}

export function standbysFrom(text: string): readonly string[] {
  return text === "" ? [] : text.split(",");
}
