import { EVENT_ID, type Event, getScalarValue, SCALAR_STYLE } from 'js-yaml';
import type { Bounds } from './kind.ts';
import { yamlEvents } from './yaml.ts';

/** A value as it stands in the text: what a scalar means is left to its reader. */
export type YamlNode =
  | { readonly text: string; readonly isQuoted: boolean }
  | { readonly items: readonly YamlNode[] }
  | { readonly pairs: ReadonlyMap<string, YamlNode> };

/**
 * The first document of a stream, with its merge keys applied; undefined when it is empty. What follows can have any form: yaml.v3 of Go never looks
 * at it. Throws as `parseYaml`, and for what yaml.v3 does not take: a second merge key, a key that is no scalar. It throws for tags, too.
 */
export function firstDocument(text: string, bounds: Bounds): YamlNode | undefined {
  const source = firstOf(text);
  const events = yamlEvents(source, bounds);
  return events.length === 0 ? undefined : new Nodes(events, source).document();
}

/** A line that begins with a mark is the border of two documents, whatever stands around it. */
function firstOf(text: string): string {
  const marks = [...text.matchAll(/^(?:---|\.\.\.)(?=\s|$)/gm)];
  const before = text.slice(0, marks[0]?.index).split('\n');
  const isFirstLine = before.every((line) => /^(?:\s*(?:#|$)|%)/.test(line));
  return text.slice(0, marks[isFirstLine ? 1 : 0]?.index);
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
    if (event.tagStart >= 0) throw new SyntaxError(`it has the tag ${this.#source.slice(event.tagStart, event.tagEnd)}`);
    const node = this.#value(event);
    if (event.anchorStart >= 0) this.#anchors.set(anchor, node);
    return node;
  }

  #value(event: Exclude<Event, { readonly type: 1 | 5 | 6 }>): YamlNode {
    if (event.type === EVENT_ID.SCALAR) return { text: getScalarValue(this.#source, event), isQuoted: event.style !== SCALAR_STYLE.PLAIN };
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
