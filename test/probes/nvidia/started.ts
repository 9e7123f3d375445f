import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type LiveNode, liveNode } from './scripted-machine.ts';
import type { ScriptedGpu, ScriptedNode } from './scripted-script.ts';

/** Uses the wall clock. */
const START_MS = Date.parse('2030-01-01T00:00:00Z');

interface Started {
  readonly node: LiveNode;
  /** Returns the collection at a time. */
  at(ms: number): Promise<Collection>;
  /** The next read is the first one of another probe. */
  restart(): Promise<void>;
}

/** A node with one GPU. */
export const started = (gpu: ScriptedGpu, options: Readonly<Record<string, string>> = {}): Started => startedNode({ gpus: [gpu] }, options);

export function startedNode(machine: ScriptedNode, { kmsg, ...options }: Readonly<Record<string, string>> = {}): Started {
  let nowMs = 0;
  const clock: Clock = { ...systemClock, now: () => START_MS + nowMs, monotonic: () => nowMs };
  const node = liveNode(machine, (root) =>
    createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock),
  );
  onTestFinished(() => node.remove());
  writeFileSync(join(node.root, 'dev/kmsg'), '');
  const create = (): Probe => {
    const made = family.createProbe(
      kmsg === undefined ? node.host : { ...node.host, kmsg },
      probeOptions(family, { source: 'nvml', 'nvml-library': node.library, ...options }),
    );
    onTestFinished(() => made.close?.());
    return made;
  };
  let probe = create();
  return {
    node,
    restart: async () => {
      await probe.close?.();
      probe = create();
    },
    at: (ms) => {
      nowMs = ms;
      return Promise.resolve(probe.collect());
    },
  };
}
