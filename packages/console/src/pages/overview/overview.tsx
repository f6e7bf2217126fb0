import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { call } from "../../api/client.ts";
import { Chart } from "../../parts/chart.tsx";
import { Choice } from "../../parts/choice.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { PageView, Section } from "../../parts/page.tsx";
import { setQuery } from "../../state/location.ts";
import { usePoll } from "../../state/polling.ts";
import { durationText, shortText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { Alarms } from "./alarms.tsx";
import { figuresLine } from "./cli-lines.ts";
import { type Figures, type Fleet, fleetOf } from "./fleet-state.ts";
import { Servers, SilentServers } from "./servers.tsx";
import { StoreFacts } from "./store.tsx";
import { FleetTiles } from "./tiles.tsx";

const WINDOWS = ["60", "300", "900"] as const;
type Window = (typeof WINDOWS)[number];
/** Long windows are large answers. */
const EVERY_MS: Readonly<Record<Window, number>> = { 60: 2_000, 300: 2_000, 900: 5_000 };

/** How the fleet is: what it issues and refuses, who is silent, and what somebody should know of. */
export function Overview({ query }: PageProps): JSX.Element {
  const window = WINDOWS.find((one) => one === query["seconds"]) ?? "60";
  const seconds = Number(window);
  const poll = usePoll(
    `figures ${window}`,
    (signal) => call("NodeService", "listFigures", { seconds }, { signal }),
    { everyMs: EVERY_MS[window] },
  );
  return (
    <PageView
      title={t("overview.title")}
      actions={
        <Choice
          label={t("overview.window")}
          value={window}
          options={WINDOWS.map((one) => [one, t(`overview.window.${one}`)] as const)}
          onChange={(chosen) => setQuery({ seconds: chosen === "60" ? undefined : chosen })}
        />
      }
    >
      <Loaded poll={poll}>{(figures) => <FleetView figures={figures} />}</Loaded>
      <CliLine line={figuresLine(seconds)} />
    </PageView>
  );
}

function FleetView({ figures }: { readonly figures: Figures }): JSX.Element {
  const [issued, others] = [t("overview.issued"), t("overview.other_reasons")];
  const fleet = useMemo(() => fleetOf(figures, { issued, others }), [figures, issued, others]);
  return (
    <>
      <FleetTiles figures={figures} fleet={fleet} />
      <Alarms figures={figures} />
      <FleetCharts fleet={fleet} />
      <Servers figures={figures} />
      <SilentServers figures={figures} />
      <StoreFacts figures={figures} />
    </>
  );
}

function FleetCharts({
  fleet: { issued, refusals, latency },
}: {
  readonly fleet: Fleet;
}): JSX.Element {
  return (
    <Section title={t("overview.charts")}>
      <div class="charts">
        <Chart title={t("overview.chart_issued")} data={issued} format={shortText} />
        <Chart
          title={t("overview.chart_latency")}
          data={latency}
          format={(micros) => durationText(micros / 1_000)}
        />
        {refusals.lines.length === 0 ? (
          <div>
            <h3>{t("overview.chart_refusals")}</h3>
            <p class="soft">{t("overview.no_refusals")}</p>
          </div>
        ) : (
          <Chart title={t("overview.chart_refusals")} data={refusals} format={shortText} />
        )}
      </div>
    </Section>
  );
}
