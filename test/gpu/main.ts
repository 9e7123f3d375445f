import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { comparison } from './comparison.ts';
import { costStage, hangStage, releaseStage } from './fault-stages.ts';
import type { Ground } from './ground.ts';
import { processStage } from './process-stage.ts';
import { countOf, type Line, notOffered, writeReport } from './report.ts';
import { type Printed, Smi } from './smi.ts';
import { useStage } from './use-stage.ts';
import { xidStage } from './xid-stage.ts';

/** Stages by name, in their order. */
const STAGES: Readonly<Record<string, (ground: Ground) => Promise<readonly Line[]>>> = {
  compare: comparison,
  process: processStage,
  hang: hangStage,
  release: releaseStage,
  cost: costStage,
  use: useStage,
  xid: xidStage,
};
/** Those that need programs of their own run only when they are named. */
const ALWAYS = Object.keys(STAGES).filter((name) => name !== 'use' && name !== 'xid');

const OPTIONS = {
  out: { type: 'string', default: '.' },
  smi: { type: 'string', default: 'nvidia-smi' },
  stages: { type: 'string', default: ALWAYS.join(',') },
  'gpu-reset': { type: 'boolean', default: false },
  agent: { type: 'string', multiple: true },
  procfs: { type: 'string', default: '/proc' },
  lab: { type: 'string' },
} as const;

/**
 * Runs the stages, and writes the report. Returns the exit status: 1 when something is different, 0 when nothing is, or there is no driver.
 * `--agent=OPTION` gives the agent an option, such as the path of the library; `--stages=compare,cost` runs only these;
 * `--stages=use,xid --lab=FOLDER` those of real loads and faults, by the programs in that folder.
 */
export async function main(words: readonly string[], say: (text: string) => void): Promise<number> {
  const { values } = parseArgs({ args: [...words], options: OPTIONS });
  const startedMs = Date.now();
  const found = findDriver(values.smi);
  if (typeof found === 'string') {
    say(`skipped: ${found}`);
    return 0;
  }
  const { program, printed } = found;
  const folder = mkdtempSync(join(tmpdir(), 'device-agent-gpu-'));
  const ground: Ground = {
    smi: new Smi(program),
    program,
    uuids: printed.gpus.map(({ uuid }) => uuid),
    folder,
    machineOptions: values.agent ?? [],
    procfs: values.procfs,
    lab: values.lab,
    mayReset: values['gpu-reset'],
  };
  const lines: Line[] = [];
  try {
    for (const name of values.stages.split(',')) lines.push(...(await ran(name, ground)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const seconds = (Date.now() - startedMs) / 1_000;
  const gpus = printed.gpus.map(({ uuid, texts }) => ({ uuid, model: texts.get('product_name') ?? '' }));
  const paths = writeReport(values.out, { takenAt: new Date(startedMs).toISOString(), driver: printed.driver, gpus, seconds, lines });
  for (const { what, expected, agent, section } of lines.filter(({ verdict }) => verdict === 'different'))
    say(`different: ${section}, ${what}: ${expected}, and the agent: ${agent}`);
  const [equal, different, missing] = (['equal', 'different', 'not offered'] as const).map((verdict) => countOf(lines, verdict));
  say(`${equal} equal, ${different} different, ${missing} not offered: ${paths.map((path) => resolve(path)).join(', ')}`);
  return different === 0 ? 0 : 1;
}

/** A stage that fails is a difference: it could not show what it should. */
async function ran(name: string, ground: Ground): Promise<readonly Line[]> {
  const stage = STAGES[name];
  if (stage === undefined) throw new Error(`no stage ${name}; there are ${Object.keys(STAGES).join(', ')}`);
  try {
    return await stage(ground);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return [{ ...notOffered(name, 'the stage itself', message), expected: 'it ends', agent: 'it failed', verdict: 'different' }];
  }
}

/** The program and what it prints; or why there is no driver. */
function findDriver(name: string): { readonly program: string; readonly printed: Printed } | string {
  const folders = name.includes('/') ? [''] : (process.env.PATH ?? '').split(delimiter);
  const program = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (program === undefined) return `no NVIDIA driver here: there is no ${name}`;
  try {
    const printed = new Smi(program).document();
    return printed.gpus.length === 0 ? 'no NVIDIA GPU here: nvidia-smi prints none' : { program, printed };
  } catch (error) {
    return `no NVIDIA driver here: ${(error instanceof Error ? error.message : String(error)).split('\n', 2).join(': ')}`;
  }
}
