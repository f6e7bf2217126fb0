// What `idmint help TOPIC` explains: pages of the docs, or chapters of them, so that nothing is written twice. No imports:
// the build reads which pages the package carries.

/** A topic: a page below docs/, or one chapter of it. */
export interface Topic {
  readonly page: string;
  readonly chapter?: string;
  /** A few words for the list of topics. */
  readonly about: string;
}

export const TOPICS: Readonly<Record<string, Topic>> = {
  kinds: { page: "choosing.md", about: "which kind of tag to choose" },
  settings: { page: "kinds.md", about: "every setting of each kind" },
  guarantees: { page: "guarantees.md", about: "what is promised, and what it depends on" },
  order: {
    page: "guarantees.md",
    chapter: "Ordered, as declared",
    about: "which ids are larger than others",
  },
  segments: {
    page: "guarantees.md",
    chapter: "Available",
    about: "ids in memory, and how long they last",
  },
  sequences: { page: "sequences.md", about: "strict order, periods" },
  snowflakes: { page: "snowflake.md", about: "ids that tell their time" },
  formats: { page: "formats.md", about: "ids as text" },
  errors: { page: "errors.md", about: "every error; idmint help REASON explains one" },
  access: { page: "access.md", about: "tokens, certificates, rights" },
  contexts: { page: "tools.md", chapter: "Name your servers", about: "servers under names" },
  stores: { page: "postgres.md", about: "the store of a fleet" },
  import: { page: "migrating.md", chapter: "Import", about: "going on above another generator" },
  migrating: { page: "migrating.md", about: "moving from Leaf, Tinyid, UUIDs and others" },
  performance: { page: "performance.md", about: "what is fast, and how to measure it" },
  questions: { page: "faq.md", about: "what is asked often" },
};

/** The topics with their few words, a line each. */
export function topicList(): string {
  const names = Object.keys(TOPICS);
  const width = Math.max(...names.map(({ length }) => length));
  return names.map((name) => `  ${name.padEnd(width)}  ${TOPICS[name]?.about}\n`).join("");
}
