import type { ComponentChildren, JSX } from "preact";

export interface Tile {
  readonly name: string;
  readonly value: ComponentChildren;
  /** What the value is to be compared with. */
  readonly more?: ComponentChildren;
  readonly tone?: "warn" | "bad" | undefined;
}

/** A few large figures. */
export function Tiles({ tiles }: { readonly tiles: readonly Tile[] }): JSX.Element {
  return (
    <dl class="tiles">
      {tiles.map(({ name, value, more, tone }) => (
        <div key={name} class={`tile ${tone ?? ""}`}>
          <dt>{name}</dt>
          <dd>{value}</dd>
          <dd class="tile-more">{more}</dd>
        </div>
      ))}
    </dl>
  );
}
