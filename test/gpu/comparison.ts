import type { Agent, ToldDevice } from './agent.ts';
import {
  compared,
  documentFigures,
  type Figure,
  instanceFigures,
  monitorFigures,
  QUERIED,
  QUERIED_LABELS,
  queryFigures,
} from './figures.ts';
import { type Ground, pause, startAgent } from './ground.ts';
import { type Line, notOffered } from './report.ts';

const ROUNDS = 3;
/** The page that follows a print is at most one refresh younger. */
const REFRESH_MS = 1_000;

/** Compares all that the four commands print with the page. What differs by chance is equal in another round. */
export async function comparison(ground: Ground): Promise<readonly Line[]> {
  const agent = await startAgent(ground);
  try {
    let lines: readonly Line[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      lines = merged(lines, await oneRound(ground, agent));
      if (lines.every(({ verdict }) => verdict !== 'different')) break;
    }
    return [...lines, ...topologyLines(ground, await agent.devices())];
  } finally {
    await agent.stop();
  }
}

const keyOf = ({ section, gpu, what }: Line): string => `${section} ${gpu} ${what}`;

function merged(earlier: readonly Line[], later: readonly Line[]): readonly Line[] {
  const before = new Map(earlier.map((line) => [keyOf(line), line]));
  return later.map((line) => {
    const known = before.get(keyOf(line));
    return line.verdict === 'different' && known !== undefined && known.verdict !== 'different' ? known : line;
  });
}

async function oneRound(ground: Ground, agent: Agent): Promise<readonly Line[]> {
  const { smi, uuids } = ground;
  const devices = await agent.devices();
  const idOf = (gpu: string, gi: string, ci: string): string | undefined =>
    devices.find((each) => each.parent === gpu && String(each.gpuInstance) === gi && String(each.computeInstance) === ci)?.id;
  const prints: Readonly<Record<string, () => readonly Figure[]>> = {
    'nvidia-smi -q -x': () => {
      const document = smi.document();
      return [...documentFigures(document), ...document.gpus.flatMap((gpu) => instanceFigures(gpu, (gi, ci) => idOf(gpu.uuid, gi, ci)))];
    },
    'nvidia-smi --query-gpu': () => queryFigures(smi.query([...Object.keys(QUERIED_LABELS), ...Object.keys(QUERIED)]).rows),
    'nvidia-smi dmon': () => monitorFigures(smi.dmon(), uuids),
  };
  const lines: Line[] = [];
  for (const [section, print] of Object.entries(prints)) {
    const before = await agent.page();
    const startedMs = Date.now();
    const figures = printed(print);
    if (typeof figures === 'string') {
      lines.push(notOffered(section, 'the command', figures));
      continue;
    }
    const tookMs = Date.now() - startedMs;
    await pause(REFRESH_MS);
    const after = await agent.page();
    lines.push(...figures.map((figure) => compared(figure, before, after)));
    lines.push({
      section,
      what: 'time of the command',
      expected: '',
      agent: `${tookMs} ms`,
      verdict: 'measured',
      note: 'between two pages',
    });
  }
  return lines;
}

/** What a command prints; or why it prints nothing, which is no fault of the agent. */
function printed<T>(print: () => T): T | string {
  try {
    return print();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** `NV4` are four links. All other words are ways over PCIe, which the agent has only as NUMA nodes and PCI paths. */
function topologyLines({ smi, uuids }: Ground, devices: readonly ToldDevice[]): readonly Line[] {
  const section = 'nvidia-smi topo -m';
  const topology = printed(() => smi.topology());
  if (typeof topology === 'string') return [notOffered(section, 'the command', topology)];
  const { cells, numaNodes } = topology;
  const deviceOf = (index: number): ToldDevice | undefined => devices.find(({ id }) => id === uuids[index]);
  return cells.flatMap((row, from) => [
    ...row.flatMap((cell, to): Line[] => {
      if (from === to) return [];
      const printed = Number(/^NV(\d+)$/.exec(cell)?.[1] ?? 0);
      const told = deviceOf(from)?.peers?.find(({ device }) => device === uuids[to])?.links ?? 0;
      const verdict = printed === told ? 'equal' : 'different';
      return [{ section, gpu: uuids[from], what: `links to GPU${to}`, expected: cell, agent: String(told), verdict }];
    }),
    numaLine(section, uuids[from], numaNodes[from] ?? '', deviceOf(from)?.numaNode),
  ]);
}

function numaLine(section: string, gpu: string | undefined, printed: string, told: number | undefined): Line {
  const line = { section, gpu, what: 'NUMA affinity', expected: printed, agent: told === undefined ? '' : String(told) };
  // A machine with one node prints none, or has the kernel tell none.
  if (!/^\d+$/.test(printed) || told === undefined) return { ...line, verdict: 'not offered' };
  return { ...line, verdict: Number(printed) === told ? 'equal' : 'different' };
}
