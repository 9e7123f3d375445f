import { afterAll, describe, expect, it } from 'vitest';
import { minutes } from '../../src/model/duration.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import type { ScriptedNode } from '../probes/nvidia/scripted-script.ts';
import { hardwareOf } from '../support/hardware.ts';
import { unless } from '../support/skipped.ts';
import { rocePort } from './adapters.ts';
import { type GpudMachine, scan, whyNotGpud } from './gpud.ts';
import { addressOf, changed, gpus, links, watchGpus } from './scripted-gpus.ts';
import { watch } from './watched-node.ts';

const lspci = (count: number): readonly string[] => [
  ...Array.from(
    { length: count },
    (_, index) => `${addressOf(index)} 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (rev a1)`,
  ),
  ...Array.from({ length: 4 }, (_, index) => `0000:0${index}:00.0 Bridge [0680]: NVIDIA Corporation Device [10de:22a3] (rev a1)`),
];
const onSwitches = (node: ScriptedNode): GpudMachine => ({ gpus: node, pci: lspci(node.gpus.length) });

const eight = gpus(8, () => links(18, 18));
const compute = hardwareOf(infiniband, { infiniband: 8 }, 30_000);
const [prime, aux] = [rocePort(8, 'up'), rocePort(9, 'not provisioned')];
const withPrime = { files: { ...compute.files, ...prime.files }, links: { ...compute.links, ...prime.links } };
const withBoth = { files: { ...withPrime.files, ...aux.files }, links: { ...withPrime.links, ...aux.links } };
const pcieBoards = (up: number): ScriptedNode => gpus(2, () => ({ name: 'NVIDIA A100 80GB PCIe', ...(up === 0 ? links(12, 0) : {}) }));

interface Case {
  readonly source: string;
  /** A machine without the fault, or whatever looked like one. What GPUd says of it is not about the case. */
  readonly sound: GpudMachine;
  readonly machine: GpudMachine;
}

const cases: readonly Case[] = [
  { source: 'NVSentinel 1361', sound: { ...onSwitches(eight), ...withPrime }, machine: { ...onSwitches(eight), ...withBoth } },
  {
    source: 'NVSentinel 1481',
    sound: { gpus: pcieBoards(1), pci: lspci(2).slice(0, 2) },
    machine: { gpus: pcieBoards(0), pci: lspci(2).slice(0, 2) },
  },
  { source: 'GPUd 1085', sound: onSwitches(eight), machine: onSwitches(changed(eight, 2, links(18, 0))) },
  { source: 'eks-node-monitoring-agent 245', sound: onSwitches(eight), machine: onSwitches(changed(eight, 2, { remap_failure: 1 })) },
  { source: 'DCGM 263', sound: onSwitches(eight), machine: onSwitches(changed(eight, 1, {}, { '230 0': 1 })) },
  { source: 'azhpc-images 506', sound: onSwitches(eight), machine: onSwitches(changed(eight, 1, { fabric_status: 23 })) },
];

async function ours({ gpus: node, files, links: ofTree = {} }: GpudMachine): Promise<string> {
  const agent = files === undefined ? (await watchGpus(node)).node : await watch({ family: infiniband, files, links: ofTree });
  await agent.pass(minutes(10));
  const told = Object.entries(agent.verdicts).filter(([, verdict]) => verdict !== 'healthy');
  return told.length === 0 ? 'healthy' : told.map(([device, verdict]) => `${device}: ${verdict}`).join('; ');
}

function theirs({ sound, machine }: Case): string {
  const before = new Set(scan(sound));
  const told = scan(machine).filter((line) => !before.has(line));
  return told.length === 0 ? 'as a sound machine' : told.join('; ');
}

const why = whyNotGpud();

describe.skipIf(why !== undefined)(`GPUd on the same machines${unless(why === undefined, why ?? '')}`, () => {
  const table: string[] = [];
  afterAll(() => process.stdout.write(`${table.join('\n')}\n`));

  it.each(cases)('says something of $source', async (one) => {
    const [own, other] = [await ours(one.machine), theirs(one)];
    table.push(`${one.source}\n  device-agent: ${own}\n  GPUd: ${other}`);
    expect([own, other].every((verdict) => verdict !== '')).toBe(true);
  });
});
