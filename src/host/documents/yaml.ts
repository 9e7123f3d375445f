import { CORE_SCHEMA, constructFromEvents, type Event, parseEvents } from 'js-yaml';
import { type Bounds, tooManyEntries } from './bounds.ts';

/** An alias is one entry for the bounds, and can stand for a large value. */
export const MOST_ALIASES = 100;

/**
 * Parses a YAML document within its bounds. Throws `TooComplex`, and an error of the parser for other text: also for no document or a second
 * one, a key that occurs twice and a depth above the bound. The work is linear in the size of the text.
 */
export function parseYaml(text: string, bounds: Bounds): unknown {
  const [first, ...others] = valuesOf(yamlEvents(text, bounds), text);
  if (others.length > 0) throw new SyntaxError('it has a second YAML document');
  return first;
}

/** The parts of the stream with their places in the text. Throws as {@link parseYaml}. */
export function yamlEvents(text: string, bounds: Bounds): Event[] {
  checkEntries(text, bounds);
  return parseEvents(text, { maxDepth: bounds.mostDepth });
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
