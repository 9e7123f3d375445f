import { expect, it } from 'vitest';
import { oracle as amdgpu } from '../probes/amdgpu/oracle.ts';
import { oracle as infiniband } from '../probes/infiniband/oracle.ts';
import { repetitions } from '../support/repetitions.ts';
import { type Choose, seeded } from '../support/seeded.ts';
import type { Fault, OracleFamily } from './family.ts';
import { INTERVAL_MS, OracleNode } from './node.ts';
import type { OverlaidTree } from './overlaid-tree.ts';
import { NEEDED_MS, RepeatKnowledge, type Use } from './repeat-knowledge.ts';

const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? repetitions(4, 12));
const FIRST_SEED = Number(process.env.ORACLE_SEED ?? 1);
const LENGTH = 20;

interface Subject {
  readonly oracle: OracleFamily;
  readonly fault: Fault;
  /** Names of the devices in the histories. */
  readonly devices: readonly string[];
  /** The files of a device show such work to the next read. */
  show(tree: OverlaidTree, device: string, use: Use): void;
}

const faultOf = ({ faults }: OracleFamily, condition: string): Fault => faults.find((one) => one.condition === condition) as Fault;
const AMDGPU_FILES = Object.keys(amdgpu.machine().files);
const CODES = { busy: 64, idle: 0 };

const subjects: readonly Subject[] = [
  {
    oracle: amdgpu,
    fault: faultOf(amdgpu, 'RasFatal'),
    devices: amdgpu.devices.slice(0, 2).map(({ id }) => id),
    show(tree, device, use) {
      tree.take(`use ${device}`);
      for (const path of AMDGPU_FILES.filter((one) => one.includes(`/${device}/`) && /busy_percent$|gpu_metrics$/.test(one))) {
        if (path.endsWith('gpu_metrics')) tree.hide(`use ${device}`, path, { kind: 'absent' });
        else tree.put(`use ${device}`, path, use === 'hidden' ? 'unknown\n' : `${CODES[use]}\n`);
      }
    },
  },
  {
    oracle: infiniband,
    // It ends by itself, so that only a boot begins a probation.
    fault: faultOf(infiniband, 'PortDown'),
    devices: infiniband.devices.slice(0, 2).map(({ id }) => id),
    show(tree, device, use) {
      const { path, move } = infiniband.counter as NonNullable<OracleFamily['counter']>;
      tree.take(`use ${device}`);
      if (use === 'hidden') tree.hide(`use ${device}`, path(device), { kind: 'absent' });
      if (use === 'busy') move(tree, device, 10_000_000);
    },
  },
];

/** Runs a history and returns what it did, with the first violation as the last line; without it undefined. */
async function runHistory({ oracle, fault, devices, show }: Subject, choose: Choose): Promise<string | undefined> {
  const { name, conditions } = oracle.family;
  const isCounted = oracle.counter !== undefined;
  const isLatched = conditions.find(({ type }) => type === fault.condition)?.class === 'latched';
  const node = new OracleNode(oracle, false, {
    probation: { busy: `${NEEDED_MS}ms` },
    conditions: { [`${name}.${fault.condition}`]: { for: '0', recovery: '0' } },
  });
  const known = new Map(devices.map((device) => [device, new RepeatKnowledge(isLatched, isCounted)]));
  const names = new Map(devices.map((device) => [device, device]));
  const kernelNames = new Map(Object.entries(oracle.kernelNames?.first ?? {}));
  const story: string[] = [];
  let count = 0;

  const violations = (): readonly string[] =>
    [...known].flatMap(([device, knowledge]) => {
      const state = node.snapshot?.devices.find((one) => one.device.id === names.get(device));
      if (state === undefined) return [`${device} is not listed`];
      const { incidents = [], probation } = state.verdict;
      const fatal = incidents.filter((one) => one.state === 'unhealthy').reduce((sum, one) => sum + one.count, 0);
      return knowledge.violations(fatal, probation).map((text) => `${device}: ${text}`);
    });
  const showUse = (): void => {
    for (const [device, { use }] of known) show(node.tree, device, use);
  };
  const tick = async (times: number): Promise<readonly string[]> => {
    for (let time = 0; time < times; time += 1) {
      showUse();
      await node.refresh(0);
      for (const knowledge of known.values()) knowledge.read();
      const found = violations();
      if (found.length > 0) return found;
      await node.clock.advance(INTERVAL_MS, () => node.settle());
    }
    return [];
  };
  const setFault = (device: string, isFaulty: boolean): void => {
    const knowledge = known.get(device) as RepeatKnowledge;
    if (knowledge.isFaulty === isFaulty) return;
    knowledge.isFaulty = isFaulty;
    if (isFaulty) fault.begin(node.tree, device, `fault ${device}`, node.clock.now());
    else if (fault.end === undefined) node.tree.take(`fault ${device}`);
    else fault.end(node.tree, device, `fault ${device}`);
  };
  const restart = async (isBoot: boolean): Promise<void> => {
    node.kill();
    for (const [device, knowledge] of known) {
      // A boot often ends the fault. A fault that is found by comparison is none that a boot begins with.
      if (isBoot && (fault.isFromPast || choose(2) === 0)) setFault(device, false);
      if (isBoot) knowledge.booted();
      else knowledge.killed();
    }
    if (isBoot) node.boot();
    await node.clock.advance(choose(3) * INTERVAL_MS, () => node.settle());
    await node.startAgent();
    await node.settle();
  };
  const rename = (device: string): void => {
    const { kernelNames: kernel } = oracle;
    if (kernel === undefined) return;
    const fresh = kernel.fresh(count);
    node.tree.rename(new Map(Object.entries(kernel.entries(device, fresh))));
    kernel.write?.(node.tree, device, fresh);
    kernelNames.set(device, fresh);
    if (kernel.areIds) names.set(device, fresh);
    node.threads.release();
  };
  const replace = async (): Promise<void> => {
    const replacement = oracle.replacements?.[0];
    const [device] = replacement?.devices ?? [];
    if (replacement === undefined || device === undefined) return;
    setFault(device, false);
    replacement.begin(node.tree, count);
    node.tree.renew(replacement.directory);
    node.threads.release();
    // Until a read tells the identity, the agent may still speak of the hardware before.
    for (let time = 0; time < 4; time += 1) {
      showUse();
      await node.refresh(INTERVAL_MS);
    }
    known.set(device, new RepeatKnowledge(isLatched, isCounted));
    for (const knowledge of known.values()) if (knowledge !== known.get(device)) for (let time = 0; time < 4; time += 1) knowledge.read();
  };

  const act = async (): Promise<readonly string[]> => {
    const device = devices[choose(devices.length)] as string;
    const knowledge = known.get(device) as RepeatKnowledge;
    const kind = choose(100);
    count += 1;
    if (kind < 30) {
      setFault(device, !knowledge.isFaulty);
      story.push(`${knowledge.isFaulty ? 'fault of' : 'reset of'} ${device}`);
    } else if (kind < 55) {
      knowledge.use = (['busy', 'busy', 'idle', 'hidden'] as const)[choose(4)] as Use;
      story.push(`${device} is ${knowledge.use}`);
    } else if (kind < 68) {
      story.push('kill');
      await restart(false);
    } else if (kind < 84) {
      story.push('boot');
      await restart(true);
    } else if (kind < 90) {
      story.push(`rename ${device}`);
      rename(device);
    } else if (kind < 94) {
      story.push('replace');
      await replace();
    } else {
      story.push('clock');
      node.clock.setWall((choose(2) === 0 ? 1 : -1) * choose(48) * 3_600_000);
    }
    const times = choose(3) === 0 ? 8 : 1 + choose(3);
    story.push(`${times} reads`);
    return await tick(times);
  };

  node.boot();
  for (const { second, leave } of oracle.duplicates ?? []) leave(node.tree, second, 'not there');
  await node.start();
  try {
    let found = await tick(2);
    for (let action = 0; action < LENGTH && found.length === 0; action += 1) found = await act();
    return found.length === 0 ? undefined : [...story, ...found].join('\n');
  } finally {
    await node.stop();
  }
}

it.each(subjects.map((subject) => [subject.oracle.family.name, subject] as const))(
  'devices of %s that fail again are counted by their hardware, and are on probation until they worked',
  async (_, subject) => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed += 1) {
      const failure = await runHistory(subject, seeded(seed));
      if (failure !== undefined) expect.fail(`seed ${seed}:\n${failure}`);
    }
  },
);
