/** Puts values where `{name}` stands. A name without a value stays as it is, so that a test and a reader see it. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
