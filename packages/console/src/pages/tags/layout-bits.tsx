import type { Bits } from "@idmint/core/kinds";
import type { JSX } from "preact";
import { t, tOr } from "../../text/text.ts";

/** The bits of an id from the highest down, as wide as they are many. */
export function LayoutBits({ bits }: { readonly bits: readonly Bits[] }): JSX.Element {
  return (
    <figure class="bits">
      <figcaption>{t("preview.bits")}</figcaption>
      {/* Its widths are attributes of SVG, since a page may carry no style of its own. */}
      <svg viewBox="0 0 63 6" preserveAspectRatio="none" aria-hidden="true">
        {bits.map(({ name, bits: width }, i) => (
          <rect
            key={name}
            class={`bit bit-${i}`}
            x={bits.slice(0, i).reduce((sum, one) => sum + one.bits, 0)}
            width={width}
            height={6}
          />
        ))}
      </svg>
      <ul>
        {bits.map(({ name, bits: width }, i) => (
          <li key={name} class={`bit-${i}`}>
            {t("bits.of", { name: tOr("bits", name), bits: width })}
          </li>
        ))}
      </ul>
    </figure>
  );
}
