import { CORE_SCHEMA, constructFromEvents, EVENT_ID, type Event, parseEvents } from 'js-yaml';
import { type Bounds, TooComplex, tooManyEntries } from './kind.ts';

/** An alias is one entry for the bounds, and can be the name of a large value. */
export const MOST_ALIASES = 100;

/**
 * The parts of the stream with their places in the text. Throws `TooComplex`, and an error of the parser for other text. The work is linear in the
 * size of the text.
 */
export function yamlEvents(text: string, bounds: Bounds): Event[] {
  checkEntries(text, bounds);
  const events = parseEvents(text, { maxDepth: bounds.mostDepth });
  checkAliases(events, text, bounds);
  return events;
}

/** Values of the documents of a stream. Throws an error of the parser. */
export function valuesOf(events: Event[], source: string): unknown[] {
  return constructFromEvents(events, { source, schema: CORE_SCHEMA, maxAliases: MOST_ALIASES });
}

/**
 * Each entry needs a line of its own, or one of `,` `[` `{`, or one of `-` `?` `:` before a space. Counting them, inside of quotes too, is an
 * upper bound that needs no parser. The parser takes some hundred bytes for each.
 */
function checkEntries(text: string, bounds: Bounds): void {
  let entries = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case 0x2d: // -
      case 0x3a: // :
      case 0x3f: // ?
        if (text.charCodeAt(at + 1) > 0x20) continue;
        break;
      case 0x0a:
      case 0x0d:
      case 0x2c: // ,
      case 0x5b: // [
      case 0x7b: // {
        break;
      default:
        continue;
    }
    entries += 1;
    if (entries > bounds.mostEntries) throw tooManyEntries(bounds);
  }
}

/** An alias repeats its complete value, so a few of them can make a value without bound, and one inside of its value makes it endless. */
function checkAliases(events: readonly Event[], text: string, bounds: Bounds): void {
  const nameOf = ({ anchorStart, anchorEnd }: { readonly anchorStart: number; readonly anchorEnd: number }): string =>
    anchorStart < 0 ? '' : text.slice(anchorStart, anchorEnd);
  const sizes = new Map<string, number>();
  const open: { readonly anchor: string; size: number }[] = [];
  const add = (anchor: string, size: number): void => {
    if (anchor !== '') sizes.set(anchor, size);
    const parent = open.at(-1);
    if (parent !== undefined) parent.size += size;
    // A pair has two values.
    if (size > 2 * bounds.mostEntries) throw tooManyEntries(bounds);
  };
  for (const event of events) {
    if (event.type === EVENT_ID.DOCUMENT) open.push({ anchor: '', size: 1 });
    else if (event.type === EVENT_ID.SCALAR) add(nameOf(event), 1);
    else if (event.type === EVENT_ID.ALIAS) {
      const name = nameOf(event);
      if (!sizes.has(name) && open.some(({ anchor }) => anchor === name)) throw new TooComplex(`the value of &${name} contains itself`);
      add('', sizes.get(name) ?? 1);
    } else if (event.type === EVENT_ID.POP) {
      const ended = open.pop();
      if (ended !== undefined) add(ended.anchor, ended.size);
    } else {
      const anchor = nameOf(event);
      sizes.delete(anchor);
      open.push({ anchor, size: 1 });
    }
  }
}
