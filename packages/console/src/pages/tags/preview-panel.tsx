import type { JSX } from "preact";
import { TextField } from "../../parts/field.tsx";
import { Facts } from "../../parts/page.tsx";
import { countText, timeText } from "../../text/format.ts";
import { t, tOr } from "../../text/text.ts";
import { LayoutBits } from "./layout-bits.tsx";
import type { Preview, PreviewFact } from "./model/preview.ts";

interface PanelProps {
  readonly preview: Preview;
  readonly rate: string;
  readonly onRate: (rate: string) => void;
}

/** What a form would make, while it is typed. */
export function PreviewPanel({ preview, rate, onRate }: PanelProps): JSX.Element {
  const { bits, facts, samples, violations, faults, withoutSamples } = preview;
  const isReady = violations.length === 0 && faults.size === 0;
  const hasRate = facts.some(({ name }) => name === "ids" || name === "ids_per_period");
  return (
    <section class="section preview" aria-labelledby="preview">
      <h2 id="preview">{t("preview.title")}</h2>
      {facts.length === 0 && !isReady && <p class="soft">{t("preview.wait")}</p>}
      {bits.length > 0 && <LayoutBits bits={bits} />}
      {facts.length > 0 && <Facts facts={facts.map(factRow)} />}
      {hasRate && (
        <TextField
          label={t("preview.rate")}
          value={rate}
          inputMode="decimal"
          placeholder="1000"
          onInput={onRate}
        />
      )}
      {samples.length > 0 && (
        <>
          <h3>{t(bits.length > 0 ? "preview.samples_now" : "preview.samples")}</h3>
          <ul class="samples">
            {samples.map((sample) => (
              <li key={sample} class="mono foreign">
                {sample}
              </li>
            ))}
          </ul>
        </>
      )}
      {isReady && samples.length === 0 && withoutSamples !== undefined && (
        <p class="soft">{t(`preview.${withoutSamples}`)}</p>
      )}
    </section>
  );
}

function factRow(fact: PreviewFact): readonly [name: string, value: string] {
  const name = tOr("preview", fact.name);
  if ("count" in fact) return [name, countText(String(fact.count))];
  if ("timeMs" in fact) return [name, timeText(fact.timeMs)];
  return [name, fact.text === "" ? t("preview.never") : fact.text];
}
