import { type Signal, useSignal } from "@preact/signals";
import { KIND_NAMES, type KindName, wordOf } from "@idmint/core/kinds";
import { zoneOffsets } from "@idmint/core/server";
import type { JSX, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import type { RequestOf } from "../../api/json.ts";
import { Button } from "../../parts/button.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { Failure } from "../../parts/failure.tsx";
import { SelectField, TextField } from "../../parts/field.tsx";
import { PageView } from "../../parts/page.tsx";
import { say } from "../../parts/toasts.tsx";
import { goTo, route } from "../../state/location.ts";
import { hrefOf } from "../../state/route-state.ts";
import { whoAmI } from "../../state/sign-in.ts";
import { t } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { FormFields } from "./form-fields.tsx";
import { draftOf, initialValues, tagJson } from "./model/draft.ts";
import {
  commonFields,
  formFields,
  type FormValues,
  groupsOf,
  kindFields,
  NAME_PATH,
} from "./model/fields.ts";
import { createLine } from "./model/lines.ts";
import { presetValues, PRESETS } from "./model/presets.ts";
import { type Preview, previewOf } from "./model/preview.ts";
import { placed } from "./model/violations.ts";
import { PreviewPanel } from "./preview-panel.tsx";
import { useNow } from "./use-now.ts";

const offsetAt = zoneOffsets();
/** So that typing does not fill the browser's history of addresses. */
const MIRROR_MS = 300;

/** The form of a new tag. What is typed is in the URL, so that a link shows the same form. */
export function NewTag({ query }: PageProps): JSX.Element {
  const kind = kindIn(query);
  if (whoAmI.value?.rights.every(({ role }) => role !== "admin") === true) return <NotAllowed />;
  return <KindForm key={kind} kind={kind} query={query} />;
}

function NotAllowed(): JSX.Element {
  return (
    <PageView title={t("form.title")}>
      <p class="empty">
        {t("common.not_allowed.text", { role: "admin", tags: t("common.all_tags") })}
      </p>
    </PageView>
  );
}

function kindIn(query: PageProps["query"]): KindName {
  return KIND_NAMES.find((name) => name === query["kind"]) ?? "segment";
}

interface FormProps {
  readonly kind: KindName;
  readonly query: Readonly<Record<string, string>>;
}

function KindForm({ kind, query }: FormProps): JSX.Element {
  const typed = useSignal<FormValues>(valuesFrom(kind, query));
  const rate = useSignal(query["rate"] ?? "");
  const sending = useSending(kind, typed);
  const values = typed.value;
  useMirror(kind, values, rate.value);
  const now = { nowMs: useNow(5_000), offsetAt, rate: rateOf(rate.value) };
  const preview = previewOf(kind, values, now);
  const paths = [NAME_PATH, ...formFields(kind).map(({ path }) => path), ...groupsOf(kind)];
  const said = placed(sending.error?.violations ?? [], paths);
  const { wasSent } = sending;
  const errors = errorsOf({ preview, said: said.byPath, values, wasSent, paths });
  const part = { kind, values, errors, onInput: sending.onInput };
  return (
    <PageView title={t("form.title")}>
      <form ref={sending.form} class="new-tag" noValidate onSubmit={sending.onSubmit}>
        <div class="new-tag-fields">
          <Basics {...part} />
          <KindSettings {...part} typed={typed} />
          <fieldset class="section">
            <legend>{t("form.common")}</legend>
            <FormFields {...part} fields={commonFields(kind)} />
          </fieldset>
        </div>
        <div class="new-tag-side">
          <PreviewPanel
            preview={preview}
            rate={rate.value}
            onRate={(text) => {
              rate.value = text;
            }}
          />
          <Rest error={sending.error} others={said.others} />
          <Button type="submit" look="main" disabled={sending.isBusy}>
            {t("form.create")}
          </Button>
          <CliLine line={createLine(kind, values)} />
        </div>
      </form>
    </PageView>
  );
}

interface Sending {
  readonly form: RefObject<HTMLFormElement | null>;
  readonly error: ApiError | undefined;
  readonly wasSent: boolean;
  readonly isBusy: boolean;
  readonly onInput: (path: string, value: string) => void;
  readonly onSubmit: (event: Event) => void;
}

/** Sends a form, and leads to the first field that is wrong. */
function useSending(kind: KindName, typed: Signal<FormValues>): Sending {
  const error = useSignal<ApiError | undefined>(undefined);
  const wasSent = useSignal(false);
  const isBusy = useSignal(false);
  const form = useRef<HTMLFormElement>(null);
  const submit = async (): Promise<void> => {
    if (isBusy.value) return;
    wasSent.value = true;
    const draft = draftOf(kind, typed.value);
    if (draft.faults.size === 0) {
      isBusy.value = true;
      error.value = await create(typed.value[NAME_PATH] ?? "", draft);
      isBusy.value = false;
    }
    // After the faults are shown.
    setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus());
  };
  return {
    form,
    error: error.value,
    wasSent: wasSent.value,
    isBusy: isBusy.value,
    onInput: (path, value) => {
      typed.value = { ...typed.value, [path]: value };
      error.value = undefined;
    },
    onSubmit: (event) => {
      event.preventDefault();
      void submit();
    },
  };
}

/** Makes the tag and shows it; answers why that failed. */
async function create(
  name: string,
  draft: ReturnType<typeof draftOf>,
): Promise<ApiError | undefined> {
  try {
    const tag = tagJson(name, draft) as RequestOf<"TagService", "createTag">["tag"];
    await call("TagService", "createTag", { tag });
  } catch (thrown) {
    if (thrown instanceof ApiError) return thrown;
    throw thrown;
  }
  say(t("form.done", { name }));
  goTo(hrefOf("tags/:tag", { tag: name }));
  return undefined;
}

/** What the form says of itself and what the server said of it. What is still empty is not wrong before it is sent. */
function errorsOf(form: {
  readonly preview: Preview;
  readonly said: ReadonlyMap<string, readonly string[]>;
  readonly values: FormValues;
  readonly wasSent: boolean;
  readonly paths: readonly string[];
}): ReadonlyMap<string, readonly string[]> {
  const { preview, said, values, wasSent, paths } = form;
  const isShown = (path: string): boolean =>
    wasSent || (values[path] ?? "") !== "" || !(path in values);
  const own = [...placed(preview.violations, paths).byPath].filter(([path]) => isShown(path));
  const faults = [...preview.faults].map(
    ([path, fault]) => [path, [t(`form.fault.${fault}`)]] as const,
  );
  return new Map([...own, ...faults, ...said]);
}

/** What is left of an error beside what stands at the fields. */
function Rest({
  error,
  others,
}: {
  readonly error: ApiError | undefined;
  readonly others: ApiError["violations"];
}): JSX.Element | null {
  if (error === undefined || (error.violations.length > 0 && others.length === 0)) return null;
  const { code, reason, message, metadata } = error;
  const rest = new ApiError(code, reason, message, { metadata, violations: others });
  return <Failure error={rest} isOfChange />;
}

interface PartProps {
  readonly kind: KindName;
  readonly values: FormValues;
  readonly errors: ReadonlyMap<string, readonly string[]>;
  readonly onInput: (path: string, value: string) => void;
}

function Basics({ kind, values, errors, onInput }: PartProps): JSX.Element {
  const changeKind = (next: KindName): void => {
    const kept = { [NAME_PATH]: values[NAME_PATH], description: values["description"] };
    goTo(hrefOf("new-tag", {}, { kind: next, ...kept }), { replace: true });
  };
  return (
    <fieldset class="section">
      <legend>{t("form.name")}</legend>
      <div class="form-grid">
        <TextField
          label={t("form.name")}
          help={t("form.name_help")}
          error={errors.get(NAME_PATH)?.join(" ")}
          value={values[NAME_PATH] ?? ""}
          required
          maxLength={128}
          onInput={(value) => onInput(NAME_PATH, value)}
        />
        <SelectField
          label={t("form.kind")}
          help={t(`kind.${kind}`)}
          value={kind}
          options={KIND_NAMES.map((name) => [name, wordOf(name)] as const)}
          onChange={changeKind}
        />
      </div>
    </fieldset>
  );
}

function KindSettings({
  kind,
  values,
  errors,
  onInput,
  typed,
}: PartProps & { readonly typed: Signal<FormValues> }): JSX.Element {
  const groups = groupsOf(kind);
  const isGrouped = (path: string): boolean => groups.some((group) => path.startsWith(`${group}.`));
  const fields = kindFields(kind);
  const shared = { values, errors, onInput };
  return (
    <fieldset class="section">
      <legend>{t("form.own")}</legend>
      {groups.map((group) => (
        <div key={group} class="form-group">
          {group === "snowflake.layout" && <Presets typed={typed} />}
          <FormFields {...shared} fields={fields.filter(({ path }) => isGrouped(path))} />
          {errors.has(group) && (
            <p class="field-error" role="alert">
              {errors.get(group)?.join(" ")}
            </p>
          )}
        </div>
      ))}
      <FormFields {...shared} fields={fields.filter(({ path }) => !isGrouped(path))} />
    </fieldset>
  );
}

function Presets({ typed }: { readonly typed: Signal<FormValues> }): JSX.Element {
  return (
    <div class="row-actions" role="group" aria-label={t("form.preset")}>
      {PRESETS.map((name) => (
        <Button
          key={name}
          look="small"
          onClick={() => {
            typed.value = { ...typed.value, ...presetValues(name) };
          }}
        >
          {name}
        </Button>
      ))}
    </div>
  );
}

function valuesFrom(kind: KindName, query: Readonly<Record<string, string>>): FormValues {
  const known = [NAME_PATH, ...formFields(kind).map(({ path }) => path)];
  const typed = Object.entries(query).filter(([path]) => known.includes(path));
  return { ...initialValues(kind), ...Object.fromEntries(typed) };
}

/** Writes what is typed into the URL, where it differs from an empty form. */
function useMirror(kind: KindName, values: FormValues, rate: string): void {
  useEffect(() => {
    const initial = initialValues(kind);
    const typed = Object.entries(values).filter(([path, text]) => text !== (initial[path] ?? ""));
    const href = hrefOf("new-tag", {}, { kind, ...Object.fromEntries(typed), rate });
    const timer = setTimeout(() => {
      const { page, query } = route.value;
      // Somebody may have left the form before it was taken away.
      if (page === "new-tag" && kindIn(query) === kind) goTo(href, { replace: true });
    }, MIRROR_MS);
    return () => clearTimeout(timer);
  }, [kind, values, rate]);
}

function rateOf(text: string): number | undefined {
  return /^\d{1,12}(?:\.\d{1,6})?$/.test(text.trim()) ? Number(text) : undefined;
}
