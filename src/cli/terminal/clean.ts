import { marked } from '../../model/one-line.ts';

/** Marks that join the sign before them, and what Unicode has not assigned. */
const NO_CELL = /[\p{C}\p{M}]/gu;
/** Signs that most terminals draw over two cells. */
const TWO_CELLS =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1b000}-\u{1b2ff}\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/gu;

/**
 * Makes each sign of a text from outside take one cell, and none of them steer the terminal. Names of pods and models come from others:
 * an escape sequence in them must not move the cursor, and a sign of two cells must not shift the columns behind it.
 */
export function clean(text: string, isUtf8: boolean): string {
  const even = marked(text.replace(/[\t\n\r]/g, ' '), '\ufffd')
    .replace(NO_CELL, '\ufffd')
    .replace(TWO_CELLS, '\ufffd');
  return isUtf8 ? even : plain(even);
}

/** Nearest ASCII text of the signs that this program writes itself. */
const PLAIN: Readonly<Record<string, string>> = {
  '…': '~',
  '·': '.',
  '–': '-',
  '—': '-',
  '°': ' ',
  µ: 'u',
  '×': 'x',
  '≥': '>',
  '≤': '<',
  '→': '>',
  '↓': 'v',
  '↑': '^',
  '├': '|',
  '└': '`',
  '│': '|',
  '─': '-',
  '▲': '^',
  '▼': 'v',
};

function plain(text: string): string {
  return [...text].map((sign) => (sign <= '~' ? sign : (PLAIN[sign] ?? '?'))).join('');
}
