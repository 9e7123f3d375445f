// Project: programs. It waits for rare values of a demo.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ServedAgent, serve } from '../support/serve.ts';
import { eventually } from '../support/until.ts';

/** Words in the first column of docs/performance.md, with the models that they name. */
const MODELS: Readonly<Record<string, RegExp>> = { 'Intel PAC': /PAC/, Alveo: /^u\d/ };
const text = readFileSync('docs/performance.md', 'utf8');
const rows = [...text.matchAll(/^\| `(\w+)` `(\w+)`, ?(.*?) \| (\d+) \| (\d+) \|$|^\| `(\w+)` `(\w+)` \| (\d+) \| (\d+) \|$/gm)].map(
  ([, family, kind, what = '', device, container, ...plain]) => ({
    kind: `${family ?? plain[0]} ${kind ?? plain[1]}`,
    model: MODELS[what] ?? /./,
    ofDevice: Number(device ?? plain[2]),
    ofContainer: Number(container ?? plain[3]),
  }),
);

let demo: ServedAgent;
beforeAll(async () => {
  const devices = '--sim.devices=all=0,nvidia=8,infiniband=2,infiniband.vf=2,fpga=2';
  demo = await serve([devices, '--sim.pods=30', '--sim.pod-change=0s', '--refresh.interval=500ms'], 'demo');
});
afterAll(async () => {
  await demo.stop();
});

interface Counted {
  readonly kind: string;
  readonly model: string;
  readonly ofDevice: number;
  /** Series of each container that holds the device. */
  readonly ofContainers: readonly number[];
}

/** Series of each device of a page. */
function counted(page: string): readonly Counted[] {
  const label = (line: string, name: string): string | undefined => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1];
  const lines = page.split('\n');
  return lines
    .filter((line) => line.startsWith('device_info{'))
    .map((info): Counted => {
      const own = lines.filter((line) => /^(?:container_)?device_(?!agent_)/.test(line) && label(line, 'device') === label(info, 'device'));
      const holders = new Map<string, number>();
      for (const line of own.filter((one) => one.startsWith('container_'))) {
        const name = `${label(line, 'pod')} ${label(line, 'container')}`;
        holders.set(name, (holders.get(name) ?? 0) + 1);
      }
      return {
        kind: `${label(info, 'family')} ${label(info, 'kind')}`,
        model: label(info, 'model') ?? '',
        ofDevice: own.filter((line) => line.startsWith('device_')).length,
        ofContainers: [...holders.values()],
      };
    });
}

it('counts the series of a device and of its container as the document does', async () => {
  expect(rows).toHaveLength(7);
  await eventually(async () => {
    const found = counted(await demo.metrics());
    const measured = rows.map((row) => {
      const own = found.filter(({ kind, model }) => kind === row.kind && row.model.test(model));
      // Further readings come while devices are in use.
      return {
        ...row,
        ofDevice: Math.max(...own.map(({ ofDevice }) => ofDevice)),
        ofContainer: Math.max(...own.flatMap(({ ofContainers }) => (ofContainers.length === 1 ? ofContainers : []))),
      };
    });
    expect(measured).toEqual(rows);
  });
});
