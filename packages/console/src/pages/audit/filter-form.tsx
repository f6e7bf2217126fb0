import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import { Field, SelectField, TextField } from "../../parts/field.tsx";
import { goTo } from "../../state/location.ts";
import { hrefOf } from "../../state/route-state.ts";
import { zone } from "../../state/settings.ts";
import { t } from "../../text/text.ts";
import { type Filters, OUTCOMES } from "./filters.ts";
import { fieldTimeOf, instantOfField } from "./zone-time.ts";

function apply(filters: Partial<Filters>): void {
  goTo(hrefOf("audit", {}, { ...filters, page: "" }));
}

/** The conditions. They are applied together, each time as a step of the history, so that "back" brings the last ones. */
export function FilterForm({ filters }: { readonly filters: Filters }): JSX.Element {
  const typed = useSignal(filters);
  const shown = JSON.stringify(filters);
  useEffect(() => {
    typed.value = filters;
  }, [shown]);
  const set = (change: Partial<Filters>): void => {
    typed.value = { ...typed.value, ...change };
  };
  const { principal, about, outcome } = typed.value;
  return (
    <form
      class="audit-filters"
      aria-label={t("audit.filters")}
      onSubmit={(event) => {
        event.preventDefault();
        apply(typed.value);
      }}
    >
      <TimeField
        label={t("audit.since")}
        value={typed.value.since}
        onInput={(since) => set({ since })}
      />
      <TimeField
        label={t("audit.until")}
        value={typed.value.until}
        onInput={(until) => set({ until })}
      />
      <TextField
        label={t("audit.principal")}
        value={principal}
        maxLength={256}
        onInput={(text) => set({ principal: text })}
      />
      <TextField
        label={t("audit.resource")}
        help={t("audit.resource.help")}
        value={about}
        maxLength={256}
        onInput={(text) => set({ about: text })}
      />
      <SelectField
        label={t("audit.outcome")}
        value={outcome}
        options={OUTCOMES.map((one) => [one, t(`audit.outcome.${one === "" ? "all" : one}`)])}
        onChange={(one) => set({ outcome: one })}
      />
      <div class="audit-filters-actions">
        <Button type="submit" look="main">
          {t("audit.apply")}
        </Button>
        <Button onClick={() => apply({})}>{t("audit.clear")}</Button>
      </div>
    </form>
  );
}

/** A time in the chosen zone; what is kept is the same moment in UTC. */
function TimeField({
  label,
  value,
  onInput,
}: {
  readonly label: string;
  readonly value: string;
  readonly onInput: (instant: string) => void;
}): JSX.Element {
  const chosen = zone.value.value;
  const name = t(chosen === "utc" ? "app.zone.utc" : "app.zone.local");
  return (
    <Field label={`${label} (${name})`}>
      {(ids) => (
        <input
          {...ids}
          class="input"
          type="datetime-local"
          step={1}
          value={fieldTimeOf(value, chosen)}
          autocomplete="off"
          onChange={({ currentTarget }) => onInput(instantOfField(currentTarget.value, chosen))}
        />
      )}
    </Field>
  );
}
