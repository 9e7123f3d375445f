import { marked } from '../../model/one-line.ts';
import type { Abilities } from './abilities.ts';
import { fitLine, type Line, type Size } from './frame.ts';
import { styleCode } from './style.ts';

/** Terminals that know synchronized updates show the frame when it is complete. Others ignore these. */
const BEGIN = '\u001b[?2026h';
const END = '\u001b[?2026l';
const RESET = '\u001b[0m';
const CLEAR = '\u001b[2J';

/** Writes frames to a terminal. It sends only the lines that differ from those on the screen, because a line may be slow. */
export class Painter {
  readonly #abilities: Abilities;
  #shown: readonly string[] = [];
  #size: Size = { columns: 0, rows: 0 };

  constructor(abilities: Abilities) {
    this.#abilities = abilities;
  }

  /** The next frame is painted in full. */
  forget(): void {
    this.#shown = [];
  }

  /** Returns what the terminal has to be sent to show the frame. Lines beyond the size are left out. */
  paint(frame: readonly Line[], size: Size): string {
    const isOther = size.columns !== this.#size.columns || size.rows !== this.#size.rows;
    const isFirst = isOther || this.#shown.length === 0;
    const lines = Array.from({ length: size.rows }, (_none, row) => this.#written(frame[row] ?? [], size.columns));
    const changed = lines.map((text, row) => (isFirst || text !== this.#shown[row] ? `\u001b[${row + 1};1H${text}` : '')).join('');
    this.#shown = lines;
    this.#size = size;
    if (changed === '') return '';
    // Each line has the full width, so nothing needs to be erased within it.
    return `${BEGIN}${isFirst ? this.#reset() + CLEAR : ''}${changed}${END}`;
  }

  #written(line: Line, columns: number): string {
    const cleaned = line.map(({ text, style }) => ({ text: clean(text, this.#abilities.isUtf8), style }));
    return fitLine(cleaned, columns)
      .map(({ text, style }) => {
        const code = styleCode(style, this.#abilities);
        const written = clean(text, this.#abilities.isUtf8);
        return code === '' ? written : `${code}${written}${RESET}`;
      })
      .join('');
  }

  #reset(): string {
    return this.#abilities.colours === 0 ? '' : RESET;
  }
}

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
