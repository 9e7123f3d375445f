import type { Style } from './style.ts';

/** A part of a line in one style. Each sign takes one cell; see `clean.ts`. */
export interface Span {
  readonly text: string;
  readonly style: Style;
}

export type Line = readonly Span[];

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export const span = (text: string, style: Style = 'text'): Span => ({ text, style });

/** Number of cells. */
export const widthOf = (text: string): number => [...text].length;

/** Cuts or fills a text to exactly `width` cells. A cut text ends in `…`. */
export function fitText(text: string, width: number): string {
  const signs = [...text];
  if (signs.length <= width) return text + ' '.repeat(width - signs.length);
  return width <= 0 ? '' : `${signs.slice(0, width - 1).join('')}…`;
}

/** Cuts or fills a line to exactly `width` cells. */
export function fitLine(line: Line, width: number): Line {
  const fitted: Span[] = [];
  let left = width;
  for (const { text, style } of line) {
    if (left === 0) break;
    const cells = widthOf(text);
    fitted.push(cells <= left ? { text, style } : { text: fitText(text, left), style });
    left -= Math.min(cells, left);
  }
  return left === 0 ? fitted : [...fitted, span(' '.repeat(left))];
}

/** Breaks a text into lines of at most `width` cells, at spaces where there are some. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((one) => pieces(one, Math.max(1, width)))) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
}

function pieces(word: string, width: number): string[] {
  const signs = [...word];
  if (signs.length <= width) return [word];
  return [signs.slice(0, width).join(''), ...pieces(signs.slice(width).join(''), width)];
}
