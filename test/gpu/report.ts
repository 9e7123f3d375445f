import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** `not offered`: one of the two has no such figure. `measured`: nothing to compare with. */
export type Verdict = 'equal' | 'different' | 'not offered' | 'measured';

/** One line of the report. */
export interface Line {
  readonly section: string;
  /** UUID of the GPU; absent for a line about the node or the agent. */
  readonly gpu?: string | undefined;
  readonly what: string;
  /** What was expected: text of `nvidia-smi`, or what must be so. */
  readonly expected: string;
  /** What the agent says. */
  readonly agent: string;
  readonly verdict: Verdict;
  readonly note?: string;
}

export interface Report {
  readonly takenAt: string;
  readonly driver: string;
  readonly gpus: readonly { readonly uuid: string; readonly model: string }[];
  readonly seconds: number;
  readonly lines: readonly Line[];
}

const VERDICTS: readonly Verdict[] = ['different', 'equal', 'not offered', 'measured'];

export const countOf = (lines: readonly Line[], verdict: Verdict): number => lines.filter((line) => line.verdict === verdict).length;

/** A line that must hold, without a figure of `nvidia-smi`. */
export const held = (section: string, what: string, expected: string, agent: string, isHeld: boolean, gpu?: string): Line => ({
  section,
  what,
  expected,
  agent,
  verdict: isHeld ? 'equal' : 'different',
  ...(gpu === undefined ? {} : { gpu }),
});

/** A stage that could not run here, and why. */
export const notOffered = (section: string, what: string, note: string): Line => ({
  section,
  what,
  expected: '',
  agent: '',
  verdict: 'not offered',
  note,
});

/** Writes the report twice: for people, and as data. Returns the paths. */
export function writeReport(folder: string, report: Report): readonly string[] {
  const [text, data] = [join(folder, 'gpu-report.md'), join(folder, 'gpu-report.json')];
  writeFileSync(text, markdownOf(report));
  writeFileSync(data, `${JSON.stringify(report, undefined, 2)}\n`);
  return [text, data];
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ');

function markdownOf({ takenAt, driver, gpus, seconds, lines }: Report): string {
  const sections = [...new Set(lines.map(({ section }) => section))];
  const counts = sections.map(
    (section) => `| ${section} | ${VERDICTS.map((verdict) => countOf(ofSection(lines, section), verdict)).join(' | ')} |`,
  );
  const head = [
    '# The agent and nvidia-smi on one machine',
    '',
    `Taken at ${takenAt}, in ${Math.round(seconds)} s. Driver ${driver}.`,
    '',
    ...gpus.map(({ uuid, model }) => `- ${model}, ${uuid}`),
    '',
    `| | ${VERDICTS.join(' | ')} |`,
    `|---|${'---|'.repeat(VERDICTS.length)}`,
    ...counts,
    '',
  ];
  const different = lines.filter(({ verdict }) => verdict === 'different');
  const first = different.length === 0 ? ['Nothing is different.', ''] : ['## Different', '', ...tableOf(different), ''];
  return [...head, ...first, ...sections.flatMap((section) => [`## ${section}`, '', ...tableOf(ofSection(lines, section)), ''])].join('\n');
}

const ofSection = (lines: readonly Line[], section: string): readonly Line[] => lines.filter((line) => line.section === section);

const tableOf = (lines: readonly Line[]): readonly string[] => [
  '| GPU | what | expected | agent | |',
  '|---|---|---|---|---|',
  ...lines.map(
    ({ gpu = '', what, expected, agent, verdict, note }) =>
      `| ${[gpu.slice(-4), what, expected, agent, note === undefined ? verdict : `${verdict}: ${note}`].map(cell).join(' | ')} |`,
  ),
];
