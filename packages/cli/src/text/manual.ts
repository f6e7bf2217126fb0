import { readFileSync } from "node:fs";
import { plainMarkdown } from "./markdown.ts";
import { type Topic, topicList, TOPICS } from "./topics.ts";

/** The text of a topic or of a reason of an error; undefined: there is none of this name. */
export function manualText(name: string): string | undefined {
  if (name === "topics") return topicList();
  const topic = topicOf(name);
  if (topic === undefined) return undefined;
  const text = chapterOf(readFileSync(pageUrl(topic.page), "utf8"), topic);
  return text === undefined ? undefined : `${plainMarkdown(text)}\nSee docs/${topic.page}.\n`;
}

function topicOf(name: string): Topic | undefined {
  if (Object.hasOwn(TOPICS, name)) return TOPICS[name];
  // A reason of an error, such as TAG_PAUSED, is a chapter.
  return /^[A-Z][A-Z_]+$/.test(name) ? { page: "errors.md", chapter: name, about: "" } : undefined;
}

/** The docs of a clone, or those that the package carries. This file is two folders below package.json. */
function pageUrl(page: string): URL {
  const docs = import.meta.url.endsWith(".ts") ? "../../../../docs/" : "../../docs/";
  return new URL(docs + page, import.meta.url);
}

/** A chapter with what is below it, or all of a page. */
function chapterOf(text: string, { chapter }: Topic): string | undefined {
  if (chapter === undefined) return text;
  const start = text.split("\n").findIndex((line) => line === `## ${chapter}`);
  if (start < 0) return undefined;
  const [title = "", ...rest] = text.split("\n").slice(start);
  const end = rest.findIndex((line) => line.startsWith("## "));
  return [title, ...rest.slice(0, end < 0 ? undefined : end)].join("\n");
}
