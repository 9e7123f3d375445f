import { Accounts } from '../../src/accounting/accounts.ts';
import { usageOptionsFor } from '../../src/accounting/options.ts';
import { Assembler } from '../../src/agent/assemble.ts';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceProcess } from '../../src/model/collection.ts';
import { defaultValues } from '../../src/model/options.ts';
import { type CheckpointEntry, type PodFacts, type PodResources, podName } from '../../src/model/pod-resources.ts';
import { measured, shared } from '../../src/model/shared-metrics.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { resolve } from '../../src/probes/nvidia/devices.ts';
import { family } from '../../src/probes/nvidia/index.ts';
import { settings } from '../accounting/small-node.ts';
import { allocation, device, familyState, listed, lookAt, podResources, report } from '../support/snapshots.ts';

const WALL = Date.parse('2030-01-01T00:00:00Z');
export const MIB = 1_048_576;
const usage = defaultValues(usageOptionsFor([family]));
export const uuid = (n: number): string => `GPU-4000000${n}-0000-4000-8000-00000000000${n}`;
const GPUS = [0, 1].map((n) => device({ family: 'nvidia', id: uuid(n), uuid: uuid(n), kind: 'gpu' }));
const specs = new Map([measured(shared.utilization, 'a'), measured(shared.memoryUsed, 'b')].map((spec) => [spec.name, spec]));

export const uid = (pod: string): string => `uid-of-${pod}`;
export const inPod = (pod: string, mib: number, part: Partial<DeviceProcess> = {}): DeviceProcess => ({
  ...{ pid: mib, name: 'python3', memoryUsedBytes: mib * MIB, podUid: uid(pod), containerId: `c-${pod}` },
  ...part,
});
export const given = (pod: string, deviceId: string, part: Partial<Allocation> = {}): Allocation =>
  allocation({ namespace: 'team', pod, container: 'main', resource: 'nvidia.com/gpu', deviceId, ...part });
export const facts = (pod: string, part: Partial<PodFacts> = {}): PodFacts => ({
  ...{ namespace: 'team', pod, uid: uid(pod), phase: 'Running', containers: [{ name: 'main', id: `c-${pod}` }] },
  ...part,
});

export interface Moment {
  readonly held?: readonly Allocation[];
  /** Processes of each GPU. */
  readonly on?: readonly (readonly DeviceProcess[])[];
  readonly pods?: readonly PodFacts[];
  readonly checkpoint?: readonly CheckpointEntry[];
  readonly kubelet?: Partial<PodResources>;
}

/** Two GPUs: assembler, accounts and engine, with a second between two reads. The answer of the kubelet comes half a second after the read. */
export class SharedGpus {
  #ms = 0;
  readonly #assembler: Assembler;
  snapshot: Snapshot | undefined;

  constructor(delegation = { holders: usage['delegated-holders'], ids: usage['delegated-ids'] }) {
    const { policy } = createPolicy({ specs: { nvidia: family.conditions }, config: {}, use: usage });
    const engine = createHealthEngine({ policy });
    const { activity } = family;
    if (activity === undefined) throw new Error('the family declares no activity');
    this.#assembler = new Assembler(
      {
        rules: { pools: [], families: new Map([['nvidia', resolve]]), delegatedIds: delegation.ids },
        specs,
        staleAfterMs: 60_000,
        missingRetentionMs: 3_600_000,
        use: { activities: new Map([['nvidia', activity]]), idle: {}, limits: usage, delegation },
      },
      (devices, { nowMs, monotonicMs }) => engine.judge({ devices, monotonicMs }, nowMs).verdicts,
      [],
      { accounts: new Accounts({ ...settings, activity: new Map([['nvidia', { spec: activity }]]) }) },
    );
  }

  pass(seconds: number, { held = [], on = [], pods, checkpoint, kubelet = {} }: Moment, look: (node: SharedGpus) => void = () => {}): this {
    for (let left = seconds; left > 0; left -= 1) {
      this.#ms += 1_000;
      const reports = GPUS.map((one, at) => {
        const processes = on[at] ?? [];
        const used = processes.reduce((sum, { memoryUsedBytes = 0 }) => sum + memoryUsedBytes, 0);
        const readings = [
          { metric: shared.utilization.name, labels: { engine: 'gpu' }, value: processes.length === 0 ? 0 : 0.9 },
          { metric: shared.memoryUsed.name, value: used },
        ];
        return report({ device: one, readings, processes, hasAllProcesses: true });
      });
      const nowMs = WALL + this.#ms;
      const uidOf = ({ container, resource, deviceId, pod }: Allocation): CheckpointEntry => ({
        ...{ podUid: uid(pod), container, resource, deviceIds: [deviceId] },
      });
      this.snapshot = this.#assembler.assemble(
        {
          families: [{ state: familyState('nvidia'), latest: lookAt(listed(reports), nowMs - 500, this.#ms - 500) }],
          podResources: podResources(held, { answeredAtMs: nowMs, answeredMonotonicMs: this.#ms, ...kubelet }),
          ...(pods === undefined ? {} : { pods: new Map(pods.map((pod) => [podName(pod), pod])) }),
          checkpoint: checkpoint ?? held.map(uidOf),
        },
        { nowMs, monotonicMs: this.#ms },
      );
      look(this);
    }
    return this;
  }

  of(gpu: number) {
    const state = this.snapshot?.devices[gpu];
    if (state === undefined) throw new Error('no such GPU');
    return state;
  }

  conditions(gpu: number): readonly string[] {
    const { conditions, pending = [] } = this.of(gpu).verdict;
    return [...conditions, ...pending].map(({ type }) => type).filter((type) => type !== 'IdleHeld');
  }

  users(gpu: number): readonly string[] {
    return (this.of(gpu).users ?? []).map(({ pod, uid: own }) => pod ?? own);
  }

  /** Accounts on a GPU by pod, in whole seconds. */
  seconds(gpu: number, of: (one: ContainerUsage) => number | undefined): Readonly<Record<string, number | undefined>> {
    const own = this.snapshot?.usage?.containers.filter((one) => one.device === this.of(gpu).key) ?? [];
    return Object.fromEntries(own.map((one) => [one.pod, of(one)]));
  }

  device(gpu: number) {
    return this.snapshot?.usage?.devices.find(({ device: key }) => key === this.of(gpu).key);
  }

  /** MiB by pod. */
  memory(gpu: number): Readonly<Record<string, number>> {
    const own = this.snapshot?.containerReadings.filter((one) => one.device === this.of(gpu).device.id) ?? [];
    return Object.fromEntries(
      own.flatMap(({ pod, readings }) =>
        [...readings].flatMap(({ metric, value }) => (metric === shared.memoryUsed.name ? [[pod, Number(value) / MIB] as const] : [])),
      ),
    );
  }
}
