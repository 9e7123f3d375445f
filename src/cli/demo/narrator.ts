import type { Board } from '../../board/board.ts';
import { findingsOf, sentenceOf, subjectOf, wellText } from '../../board/summary.ts';
import { clockText } from '../../board/units.ts';

const LONGEST_LINE = 120;

/** Tells what changed on the node, in the words of the page: one line for each new finding, and one when all is well again. */
export class DemoNarrator {
  #known: ReadonlySet<string> = new Set();
  #wasIll = false;

  /** The new lines; empty while nothing changed. */
  lines(board: Board): readonly string[] {
    const all = findingsOf(board).filter(({ appearance }) => appearance !== 'pending');
    const findings = all.filter(({ appearance }) => appearance !== 'recovering');
    // Who is hit changes with each pod, and is no news.
    const keyOf = (finding: (typeof findings)[number]): string => `${subjectOf(finding)} ${finding.phrase}`;
    const told = findings.filter((finding) => !this.#known.has(keyOf(finding))).map((finding) => sentenceOf(board, [finding]));
    const isWellAgain = all.length === 0 && this.#wasIll;
    this.#wasIll = all.length > 0;
    this.#known = new Set(findings.map(keyOf));
    const clock = clockText(Date.parse(board.now), Date.parse(board.now)).replace(' UTC', '');
    return (isWellAgain ? [wellText(board)] : told).map((text) => cut(`${clock}  ${text}`));
  }
}

const cut = (line: string): string => (line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE - 1)}…`);
