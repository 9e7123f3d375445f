import { oneLine } from '../../model/one-line.ts';

/** A token of a template: `{name}`, `{1}`, `{pciAddress}`. */
const TOKEN = /\{([A-Za-z][A-Za-z0-9]*|[1-9])\}/g;

/** Texts by token. */
export type Words = Readonly<Record<string, string | undefined>>;

/** Fills a template; undefined when a token has no text. */
export function fill(template: string, words: Words): string | undefined {
  let isComplete = true;
  const text = template.replace(TOKEN, (_, token: string) => {
    const word = Object.hasOwn(words, token) ? words[token] : undefined;
    if (word === undefined) isComplete = false;
    return word ?? '';
  });
  return isComplete ? text : undefined;
}

/** Like {@link fill}, for a path: no token may add a directory, a star, or a way up. */
export function fillPath(template: string, words: Words): string | undefined {
  const safe = Object.fromEntries(Object.entries(words).filter(([, word]) => word !== undefined && /^[\w:@+-][\w.:@+-]*$/.test(word)));
  return fill(template, safe);
}

/** The tokens of a template. */
export function tokensOf(template: string): readonly string[] {
  return [...template.matchAll(TOKEN)].map(([, token]) => token as string);
}

/** The captures of a match as texts of `{1}`, `{2}`, …. */
export function captureWords(captures: readonly string[]): Words {
  return Object.fromEntries(captures.map((text, at) => [String(at + 1), text]));
}

/** Longest text that becomes a label or a name. */
const MOST_CHARACTERS = 128;

/** The first characters of a text, without control characters. */
export function plain(text: string): string {
  return oneLine(text.slice(0, MOST_CHARACTERS)).trim();
}
