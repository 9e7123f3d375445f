// Project: programs. It runs the whole proof on hardware against stand-ins.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { main } from './main.ts';
import type { Report } from './report.ts';
import { type Prints, StandIn } from './stand-in.ts';

// The proof on real hardware, `npm run test:gpu`, against the stand-ins: it must find nothing where nothing is different, and each difference.

let out: string;
beforeAll(() => {
  out = mkdtempSync(join(tmpdir(), 'device-agent-gpu-report-'));
});
afterAll(() => rmSync(out, { recursive: true }));

interface Run {
  readonly status: number;
  readonly said: string;
  readonly report: Report;
}

async function run(stages: string, change?: (prints: Prints) => Prints): Promise<Run> {
  const machine = new StandIn(change);
  const before = { ...process.env };
  Object.assign(process.env, machine.environment);
  try {
    const said: string[] = [];
    const status = await main(machine.words(out, stages), (text) => void said.push(text));
    return { status, said: said.join('\n'), report: JSON.parse(readFileSync(join(out, 'gpu-report.json'), 'utf8')) };
  } finally {
    process.env = before;
    machine.remove();
  }
}

const different = ({ report }: Run): string[] =>
  report.lines
    .filter(({ verdict }) => verdict === 'different')
    .map(({ section, what, expected, agent }) => `${section}: ${what}: ${expected} / ${agent}`);

/** Replaces the first occurrence of a text, which must be there. */
function replaced(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`nothing to change: ${from}`);
  return text.replace(from, to);
}

/** A wrong figure of `nvidia-smi`, as it would be if the agent read it wrongly, and how the report names it. */
const PLANTED: readonly { readonly kind: string; readonly change: (prints: Prints) => Prints; readonly found: RegExp }[] = [
  {
    kind: 'a temperature',
    change: (prints) => ({ ...prints, document: replaced(prints.document, '<gpu_temp>41 C', '<gpu_temp>47 C') }),
    found: /^nvidia-smi -q -x: temperature\/gpu_temp: 47 C/,
  },
  {
    kind: 'memory in another unit',
    change: (prints) => ({ ...prints, document: replaced(prints.document, '<total>81559 MiB', '<total>83516 MiB') }),
    found: /^nvidia-smi -q -x: fb_memory_usage\/total/,
  },
  {
    kind: 'a power limit',
    change: (prints) => ({ ...prints, document: replaced(prints.document, '<min_power_limit>200.00 W', '<min_power_limit>100.00 W') }),
    found: /^nvidia-smi -q -x: gpu_power_readings\/min_power_limit/,
  },
  {
    kind: 'a count of errors',
    change: (prints) => ({ ...prints, document: replaced(prints.document, '<sram_uncorrectable>1<', '<sram_uncorrectable>2<') }),
    found: /^nvidia-smi -q -x: ecc_errors: aggregate uncorrectable sram: 2/,
  },
  {
    kind: 'a flag',
    change: (prints) => ({ ...prints, document: replaced(prints.document, 'sw_power_cap>Active', 'sw_power_cap>Not Active') }),
    found: /^nvidia-smi -q -x: clocks_event_reasons\/clocks_event_reason_sw_power_cap: Not Active/,
  },
  {
    kind: 'a text of the identity',
    change: (prints) => ({ ...prints, document: replaced(prints.document, '<serial>165310', '<serial>165399') }),
    found: /^nvidia-smi -q -x: serial: 165399 \/ 165310/,
  },
  {
    kind: 'a figure that only the agent has',
    change: (prints) => ({ ...prints, document: replaced(prints.document, '<memory_temp>47 C', '<memory_temp>N/A') }),
    found: /^nvidia-smi -q -x: temperature\/memory_temp: N\/A \/ 47/,
  },
  {
    kind: 'a state',
    change: (prints) => ({ ...prints, document: replaced(prints.document, '<gpu_recovery_action>None', '<gpu_recovery_action>Drain P2P') }),
    found: /^nvidia-smi -q -x: gpu_recovery_action: drain_p2p \/ none/,
  },
  {
    kind: 'a field of the query, of the second GPU',
    change: (prints) => ({ ...prints, query: replaced(prints.query, 'utilization.gpu=37|38', 'utilization.gpu=37|61') }),
    found: /^nvidia-smi --query-gpu: utilization\.gpu: 61/,
  },
  {
    kind: 'a column of dmon',
    change: (prints) => ({ ...prints, dmon: prints.dmon.replaceAll(' 2619', ' 1593') }),
    found: /^nvidia-smi dmon: mclk: 1593/,
  },
  {
    kind: 'the number of links',
    change: (prints) => ({ ...prints, topology: replaced(prints.topology, 'NV18', 'NV12') }),
    found: /^nvidia-smi topo -m: links to GPU1: NV12 \/ 18/,
  },
];

describe('the proof on hardware', () => {
  it('finds no difference where agent and nvidia-smi agree', async () => {
    const result = await run('compare');
    expect(different(result)).toEqual([]);
    expect(result.status).toBe(0);
    // A comparison of nothing finds nothing.
    expect(result.report.lines.filter(({ verdict }) => verdict === 'equal').length).toBeGreaterThan(250);
    expect(readFileSync(join(out, 'gpu-report.md'), 'utf8')).toContain('Nothing is different.');
  });

  it('finds each planted difference, and nothing else', async () => {
    const result = await run('compare', (prints) => PLANTED.reduce((changed, { change }) => change(changed), prints));
    expect(result.status).toBe(1);
    const found = different(result);
    for (const { kind, found: pattern } of PLANTED)
      expect(
        found.filter((line) => pattern.test(line)),
        kind,
      ).not.toEqual([]);
    expect(found.filter((line) => !PLANTED.some(({ found: pattern }) => pattern.test(line)))).toEqual([]);
  });

  it('proves a CUDA process in a pod, kills and hangs, the release and the cost', async () => {
    const result = await run('process,hang,release,cost');
    expect(different(result)).toEqual([]);
    expect(result.report.lines.map(({ what, verdict }) => `${what}: ${verdict}`)).toEqual([
      'process of the GPU: equal',
      'pod of the process: equal',
      'holder of the GPU: equal',
      'memory of the process: equal',
      'GPU busy: equal',
      'power under load: equal',
      'the stopped process keeps its GPU: equal',
      'the killed process leaves its GPU: equal',
      'after a kill of the agent: equal',
      'while nvidia-smi hangs: equal',
      'once nvidia-smi answers again: equal',
      ...Array.from({ length: 3 }, () => [
        'driver files in use before: equal',
        'driver files in use while released: equal',
        'state while released: equal',
        'nvidia-smi --gpu-reset: not offered',
        'state afterwards: equal',
      ]).flat(),
      'time of a read: measured',
      'CPU of the whole agent: measured',
    ]);
  });

  it('runs real loads only with the programs for them', async () => {
    const { status, report } = await run('use');
    expect([status, report.lines.map(({ what, verdict, note }) => [what, verdict, note])]).toEqual([
      0,
      [['loads', 'not offered', 'no folder with the programs of loads: --lab']],
    ]);
  });

  it('says why it does nothing where there is no driver', () => {
    const words = ['test/gpu/run.mjs', `--out=${out}`, '--smi=/nowhere/nvidia-smi'];
    const said = execFileSync(process.execPath, words, { encoding: 'utf8' });
    expect(said).toBe('skipped: no NVIDIA driver here: there is no /nowhere/nvidia-smi\n');
  });
});
