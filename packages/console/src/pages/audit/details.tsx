import type { JSX } from "preact";
import { Facts } from "../../parts/page.tsx";
import { route, setQuery } from "../../state/location.ts";
import { t, tOr } from "../../text/text.ts";
import { type Difference, differencesOf } from "./differences.ts";
import type { AuditEvent } from "./event.ts";

/** Everything that an event tells, open when the URL names it. */
export function Details({
  event,
  isOpen,
}: {
  readonly event: AuditEvent;
  readonly isOpen: boolean;
}): JSX.Element {
  const { eventId } = event;
  const onToggle = (opened: boolean): void => {
    const shown = route.value.query["event"];
    if (opened && shown !== eventId) setQuery({ event: eventId });
    // One that another took the place of is closed by that one.
    if (!opened && shown === eventId) setQuery({ event: undefined });
  };
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => onToggle(currentTarget.open)}>
      <summary>{t("audit.details")}</summary>
      {isOpen && <Told event={event} />}
    </details>
  );
}

function Told({ event }: { readonly event: AuditEvent }): JSX.Element {
  const { proof, peer, server, method, eventId, kind, before, after } = event;
  const facts = [
    [t("audit.method"), method],
    [t("audit.proof"), proof === "" ? "" : tOr("audit.proof", proof)],
    [t("audit.peer"), peer],
    [t("audit.server"), server],
    [t("audit.event"), eventId],
  ] as const;
  return (
    <>
      <Facts
        facts={facts
          .filter(([, value]) => value !== "")
          .map(([name, value]) => [name, <bdi key={name}>{value}</bdi>])}
      />
      {kind === "AUDIT_KIND_CHANGE" && <Differences before={before} after={after} />}
    </>
  );
}

function Differences({
  before,
  after,
}: {
  readonly before: string;
  readonly after: string;
}): JSX.Element {
  const found = differencesOf(before, after);
  if (found === undefined) {
    return (
      <pre tabindex={0}>
        {before}
        {"\n"}
        {after}
      </pre>
    );
  }
  if (found.length === 0) return <p>{t("audit.no_difference")}</p>;
  return (
    <table class="difference">
      <caption>{t("audit.difference")}</caption>
      <thead>
        <tr>
          <th scope="col">{t("audit.name")}</th>
          <th scope="col">{t("audit.before")}</th>
          <th scope="col">{t("audit.after")}</th>
        </tr>
      </thead>
      <tbody>{found.map(oneDifference)}</tbody>
    </table>
  );
}

function oneDifference({ name, before, after }: Difference): JSX.Element {
  return (
    <tr key={name}>
      <th scope="row">
        <bdi>{name}</bdi>
      </th>
      <td>
        {before !== undefined && (
          <del>
            <bdi>{before}</bdi>
          </del>
        )}
      </td>
      <td>
        {after !== undefined && (
          <ins>
            <bdi>{after}</bdi>
          </ins>
        )}
      </td>
    </tr>
  );
}
