import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** The head of a page and what it holds. Its heading takes the focus when the page is gone to, so that it is heard. */
export function PageView({
  title,
  actions,
  children,
}: {
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · idmint`;
  }, [title]);
  useEffect(() => {
    // Not at the first view, where the browser begins at the top by itself.
    if (document.body.dataset["moved"] === "yes") heading.current?.focus();
    document.body.dataset["moved"] = "yes";
  }, []);
  return (
    <>
      <div class="page-head">
        <h1 ref={heading} tabindex={-1}>
          {title}
        </h1>
        <div class="page-actions">{actions}</div>
      </div>
      {children}
    </>
  );
}

/** A part of a page with a heading of its own. */
export function Section({
  title,
  actions,
  children,
}: {
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <section class="section">
      <div class="section-head">
        <h2>{title}</h2>
        <div class="page-actions">{actions}</div>
      </div>
      {children}
    </section>
  );
}

/** Names and values. */
export function Facts({
  facts,
}: {
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[];
}): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
