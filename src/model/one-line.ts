/**
 * Characters that control a terminal, change the order of the others, or are not visible: C0, DEL and C1, bidirectional controls, zero
 * width, line and paragraph separators, variation selectors, tags, unpaired surrogates. Source: Unicode properties Cc, Cf, Cs, Zl, Zp, DI.
 */
const UNSEEN = '[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{DI}]';
const EACH = new RegExp(UNSEEN, 'gu');
const RUNS = new RegExp(`${UNSEEN}+`, 'gu');
/** The format itself writes tabs, newlines and the line ends of CSV. */
const EACH_IN_LINES = new RegExp(`(?![\\t\\n]|\\r\\n)${UNSEEN}`, 'gu');

/** Nearly all texts have nothing else, and this look is cheaper than one for {@link UNSEEN}. */
const NOT_PRINTABLE_ASCII = /[^ -~]/;

/** Replaces such characters by spaces, where a text is kept. */
export const oneLine = (text: string): string => (NOT_PRINTABLE_ASCII.test(text) ? text.replace(RUNS, ' ') : text);

/** Replaces each such character by `mark`. */
export const marked = (text: string, mark: string): string => text.replace(EACH, mark);

/** Writes such characters as `\u001b`, where somebody else's text is shown: a name, a cell, a path. The escapes are those of JSON. */
export const visible = (text: string): string => text.replace(EACH, escaped);

/** As {@link visible} for a text with lines of its own. A JSON text stays valid and equal. */
export const visibleLines = (text: string): string => text.replace(EACH_IN_LINES, escaped);

const escaped = (character: string): string =>
  character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

/** Shortens a text to one line of `limit` bytes; three dots replace the rest. */
export function shortened(text: string, limit: number): string {
  const line = oneLine(text);
  if (Buffer.byteLength(line) <= limit) return line;
  let kept = '';
  let bytes = 0;
  for (const character of line) {
    bytes += Buffer.byteLength(character);
    if (bytes > limit - 3) break;
    kept += character;
  }
  return `${kept.trimEnd()}...`;
}

/** The first `most` names as one text, with the number of the others: `a, b and 3 more`. */
export function firstOf(names: readonly string[], most: number): string {
  const others = names.length - most;
  return `${names.slice(0, most).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}
