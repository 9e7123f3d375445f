import { EVENT_ID, type Event, getScalarValue, SCALAR_STYLE } from 'js-yaml';
import { valueEnd } from './json.ts';
import type { Bounds } from './kind.ts';
import { yamlEvents } from './yaml.ts';

/** A value as it stands in the text: what a scalar means is left to its reader. */
export type YamlNode =
  | { readonly text: string; readonly isQuoted: boolean }
  | { readonly items: readonly YamlNode[] }
  | { readonly pairs: ReadonlyMap<string, YamlNode> };

/** `\/`, and one of the two escapes of a character above U+FFFF. */
const JSON_ONLY = /^\\(?:\/|u.)/;
/** Characters that yaml.v3 does not take, and the one that stands for bytes that are no UTF-8. */
const NO_TEXT = /[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffc\u{10000}-\u{10ffff}]/u;

/**
 * The first document of a stream, with its merge keys applied; undefined when it is empty. It takes what yaml.v3 of Go takes, which never looks at what
 * follows. Throws as `yamlEvents`, and for tags that name a type.
 */
export function firstDocument(text: string, bounds: Bounds): YamlNode | undefined {
  const source = firstOf(text, bounds);
  if (NO_TEXT.test(source)) throw new SyntaxError('it has a character that no text has');
  const events = yamlEvents(source, bounds);
  return events.length === 0 ? undefined : new Nodes(events, source).document();
}

/**
 * A line that begins with a mark is the border of two documents, whatever stands around it. An object of JSON ends with its brace: a shorter one that
 * was written over a longer one leaves the end of that.
 */
function firstOf(text: string, bounds: Bounds): string {
  const start = text.search(/\S/);
  if (text[start] === '{') return text.slice(0, valueEnd(text, start, bounds));
  const marks = text.matchAll(/^(?:---|\.\.\.)(?=\s|$)/gm);
  const first = marks.next().value;
  const head = text.slice(0, first?.index);
  // Only comments and directives stand before the mark that begins the first document.
  if (first?.[0] !== '---' || /^(?![^\S\n]*(?:#|$)|%)/m.test(head)) return head;
  if (/^%(?!(?:YAML 1\.1|TAG)(?:\s|$))/m.test(head)) throw new SyntaxError('it has a directive that is not %YAML 1.1');
  return text.slice(0, marks.next().value?.index);
}

class Nodes {
  readonly #events: Iterator<Event>;
  readonly #source: string;
  readonly #anchors = new Map<string, YamlNode>();

  constructor(events: readonly Event[], source: string) {
    this.#events = events.values();
    this.#source = source;
  }

  document(): YamlNode | undefined {
    this.#next();
    return this.#node();
  }

  #next(): Event {
    return this.#events.next().value as Event;
  }

  /** Undefined at the end of the value around it. */
  #node(): YamlNode | undefined {
    const event = this.#next();
    if (event.type === EVENT_ID.POP || event.type === EVENT_ID.DOCUMENT) return undefined;
    const anchor = this.#source.slice(event.anchorStart, event.anchorEnd);
    if (event.type === EVENT_ID.ALIAS) {
      const node = this.#anchors.get(anchor);
      if (node === undefined) throw new SyntaxError(`there is no &${anchor}`);
      return node;
    }
    const tag = this.#source.slice(event.tagStart, event.tagEnd);
    if (!/^(?:!(?:!str|[\w-]*))?$/.test(tag)) throw new SyntaxError(`it has the tag ${tag}`);
    if (!/^[\w-]*$/.test(anchor)) throw new SyntaxError(`it has the anchor &${anchor}`);
    const node = this.#value(event, tag.length > 1);
    if (anchor !== '') this.#anchors.set(anchor, node);
    return node;
  }

  /** A scalar with a tag is text, as one with quotes. */
  #value(event: Exclude<Event, { readonly type: 1 | 5 | 6 }>, isTagged: boolean): YamlNode {
    if (event.type === EVENT_ID.SCALAR) {
      const raw = event.style === SCALAR_STYLE.DOUBLE_QUOTED ? this.#source.slice(event.valueStart, event.valueEnd) : '';
      for (const [part] of raw.matchAll(/\\(?:u[dD][89a-fA-F]|.)/gs))
        if (JSON_ONLY.test(part)) throw new SyntaxError(`it has the escape ${part}, which only JSON has`);
      return { text: getScalarValue(this.#source, event), isQuoted: isTagged || event.style !== SCALAR_STYLE.PLAIN };
    }
    if (event.type === EVENT_ID.MAPPING) return { pairs: this.#pairs() };
    const items: YamlNode[] = [];
    for (let item = this.#node(); item !== undefined; item = this.#node()) items.push(item);
    return { items };
  }

  /** A key of the mapping itself wins over one that it merges, and an earlier merged one over a later one. */
  #pairs(): ReadonlyMap<string, YamlNode> {
    const pairs = new Map<string, YamlNode>();
    let merged: readonly YamlNode[] | undefined;
    for (let key = this.#node(); key !== undefined; key = this.#node()) {
      const value = this.#node() as YamlNode;
      if (!('text' in key)) throw new SyntaxError('it has a key that is no scalar');
      const isMerge = key.text === '<<' && !key.isQuoted;
      if (isMerge ? merged !== undefined : pairs.has(key.text)) throw new SyntaxError(`it has the key ${key.text} twice`);
      if (isMerge) merged = 'items' in value ? value.items : [value];
      else pairs.set(key.text, value);
    }
    for (const other of merged ?? []) {
      if (!('pairs' in other)) throw new SyntaxError('it merges what is no mapping');
      for (const [key, value] of other.pairs) if (!pairs.has(key)) pairs.set(key, value);
    }
    return pairs;
  }
}
