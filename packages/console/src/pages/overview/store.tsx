import type { JSX } from "preact";
import { Facts, Section } from "../../parts/page.tsx";
import { StateBadge } from "../../parts/states.tsx";
import { timeText } from "../../text/format.ts";
import { t, tOr } from "../../text/text.ts";
import { type Figures, stoppedSince, ticketsOf, worstStore } from "./fleet-state.ts";

export function StoreFacts({
  figures: { nodes },
}: {
  readonly figures: Figures;
}): JSX.Element | null {
  const store = worstStore(nodes);
  if (store === undefined) return null;
  const stopped = stoppedSince(nodes);
  return (
    <Section title={t("overview.store")}>
      {stopped !== undefined && (
        <p class="notice bad">{t("overview.stopped", { time: timeText(stopped) })}</p>
      )}
      <Facts
        facts={[
          [t("overview.state"), <StateBadge key="state" state={store.state} />],
          [t("overview.store_backend"), tOr("backend", store.backend)],
          [t("overview.store_place"), <code key="place">{store.place}</code>],
          [t("overview.store_schema"), String(store.schemaVersion)],
          ...(store.fenceReason === ""
            ? []
            : [[t("overview.store_fence"), store.fenceReason] as const]),
          ...ticketsOf(nodes).map(
            ({ name, state, reason }) =>
              [
                t("overview.ticket", { name }),
                <>
                  <StateBadge state={state} /> {reason}
                </>,
              ] as const,
          ),
        ]}
      />
    </Section>
  );
}
