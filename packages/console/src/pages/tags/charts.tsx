import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { call } from "../../api/client.ts";
import { Chart } from "../../parts/chart.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Section } from "../../parts/page.tsx";
import { usePoll } from "../../state/polling.ts";
import { countText, durationText, numberText, shortText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import { type Figures, tagFiguresOf } from "./model/tag-figures.ts";

const SECONDS = 300;
const EVERY_MS = 2_000;

/** How fast the servers issue the ids of a tag, and how long those in memory last. */
export function Charts({ tag }: { readonly tag: string }): JSX.Element {
  const poll = usePoll(
    `figures\n${tag}`,
    (signal) => call("NodeService", "listFigures", { tag, seconds: SECONDS }, { signal }),
    { everyMs: EVERY_MS },
  );
  return (
    <Section title={t("chart.title")}>
      <Loaded poll={poll}>{(figures) => <FigureView figures={figures} />}</Loaded>
    </Section>
  );
}

function FigureView({ figures }: { readonly figures: Figures }): JSX.Element {
  const found = useMemo(() => tagFiguresOf(figures), [figures]);
  const silent = figures.silentNodes.map(({ instance }) => instance).join(", ");
  return (
    <>
      {silent !== "" && <p class="notice foreign">{t("chart.silent", { servers: silent })}</p>}
      {found === undefined ? (
        <p class="soft">{t("chart.none")}</p>
      ) : (
        <>
          <p class="soft">
            {t("chart.ready", { count: countText(String(found.readyIds)) })}{" "}
            {found.epochs.length > 1 && t("chart.epochs", { epochs: found.epochs.join(", ") })}{" "}
            {found.hidden > 0 && t("chart.hidden", { count: numberText(found.hidden) })}
          </p>
          <div class="charts">
            <Chart title={t("chart.rate")} data={found.rate} format={shortText} />
            <Chart
              title={t("chart.remaining")}
              data={found.remaining}
              format={(seconds) => durationText(seconds * 1_000)}
            />
          </div>
        </>
      )}
    </>
  );
}
