import type { LineForm } from '../kit/log-row.ts';

/** A part of a form: fixed text, or a wildcard with its lengths and the characters that it cannot have. */
type Part =
  | string
  | { readonly name?: string; readonly other?: RegExp; readonly least: number; readonly most: number; readonly isLazy: boolean };

const PART = /\{([A-Za-z][A-Za-z0-9]*)\}|[*#]|(?:(?!\{[A-Za-z][A-Za-z0-9]*\})[^*#])+/g;

/**
 * The form of a line: `{word}` is one word, `#` a number, `*` any characters, each with a bound. A regular expression would try their lengths
 * again for each length of those before. Here a part that did not fit at a place is not tried there again, so a match takes at most as many steps as
 * the line has characters, times the parts, times 200.
 */
export function lineForm(form: string): LineForm {
  const parts = [...form.matchAll(PART)].map(([sign, name]): Part => {
    if (name !== undefined) return { name, other: /[\s,;:()]/, least: 1, most: 64, isLazy: false };
    if (sign === '*') return { least: 0, most: 200, isLazy: true };
    return sign === '#' ? { other: /\D/, least: 1, most: 20, isLazy: false } : sign;
  });
  return {
    source: `^${form.replace(/[\\^$.*+?()[\]{}|#/]/g, '\\$&')}`,
    exec(text) {
      let failed: Uint8Array | undefined;
      const groups: Record<string, string> = {};
      const fits = (index: number, at: number): boolean => {
        const part = parts[index];
        if (part === undefined) return true;
        if (typeof part === 'string') return text.startsWith(part, at) && fits(index + 1, at + part.length);
        failed ??= new Uint8Array(parts.length * (text.length + 1));
        const state = index * (text.length + 1) + at;
        if (failed[state] === 1) return false;
        const { name, other, least, most, isLazy } = part;
        let longest = Math.min(most, text.length - at);
        if (other !== undefined) {
          const end = text.slice(at, at + longest).search(other);
          if (end >= 0) longest = end;
        }
        for (let step = 0; step <= longest - least; step += 1) {
          const end = at + (isLazy ? least + step : longest - step);
          if (!fits(index + 1, end)) continue;
          if (name !== undefined) groups[name] = text.slice(at, end);
          return true;
        }
        failed[state] = 1;
        return false;
      };
      return fits(0, 0) ? { groups } : null;
    },
  };
}
