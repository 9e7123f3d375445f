import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type LiveNode, liveNode } from './scripted-machine.ts';
import { hopper, type ScriptedNode } from './scripted-script.ts';

let node: LiveNode | undefined;
afterEach(() => node?.remove());

/** Folders of the kernel driver, one for each GPU to which it is bound. */
const bind = (root: string, index: number): unknown => mkdirSync(folderOf(root, index), { recursive: true });
const unbind = (root: string, index: number): void => rmSync(folderOf(root, index), { recursive: true });
const folderOf = (root: string, index: number): string =>
  join(root, 'proc/driver/nvidia/gpus', String(hopper(index).values.bus_id).slice(4).toLowerCase());
const idsOf = ({ reports }: Collection): string[] => reports.map(({ device }) => device.id.slice(-2));

/** The library knows only the GPUs that the script contained at its start. */
function started(machine: ScriptedNode): { at(ms: number): Promise<Collection>; close(): Promise<void> } {
  let nowMs = 0;
  const clock: Clock = { ...systemClock, monotonic: () => nowMs };
  node = liveNode(machine, (root) => createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock));
  writeFileSync(join(node.root, 'dev/kmsg'), '');
  const probe = family.createProbe(node.host, probeOptions(family, { source: 'nvml', 'nvml-library': node.library }));
  return {
    at: (ms) => {
      nowMs = ms;
      return Promise.resolve(probe.collect());
    },
    close: async () => probe.close?.(),
  };
}

describe('a GPU to which the driver is bound', () => {
  it('after the start appears at once, and disappears within half a minute after it is unbound', async () => {
    const probe = started({ gpus: [hopper(0)] });
    const { root, write } = node as LiveNode;
    bind(root, 0);
    await probe.at(0);
    bind(root, 1);
    write({ gpus: [hopper(0), hopper(1)] });
    const met = await probe.at(1_000);
    expect(idsOf(met)).toEqual(['01', '02']);
    expect(met.reports.flatMap(({ read }) => read?.findings ?? []).filter(({ status }) => status === true)).toEqual([]);
    unbind(root, 1);
    write({ gpus: [hopper(0)] });
    const after = await probe.at(60_000);
    expect(idsOf(after)).toEqual(['01']);
    expect(after.problems).toEqual([]);
    expect(after.listing).toBe('complete');
    await probe.close();
  });
});
