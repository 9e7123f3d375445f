import { afterEach } from 'vitest';
import type { ConditionOverride } from '../../src/health/policy/policy-config.ts';
import { seconds } from '../../src/model/duration.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { OracleNode } from '../oracle/node.ts';
import type { OverlaidTree } from '../oracle/overlaid-tree.ts';

/** A machine as plain files. Paths are relative to its root and start with `sys/`, `proc/`, `dev/` or `bin/`. */
export interface WatchedMachine {
  readonly family: DeviceFamily;
  readonly files: Readonly<Record<string, string>>;
  readonly links?: Readonly<Record<string, string>>;
  /** Options of the family; `{root}` is replaced by the machine's root. */
  readonly options?: Readonly<Record<string, string>>;
  /** A kubelet tells who holds the devices. */
  readonly hasKubelet?: boolean;
}

/** Time between two reads. It is longer than the agent's default, and shorter than the age at which a verdict is unknown. */
const EVERY_MS = seconds(30);

/** Changes of the policy, by condition. */
type Conditions = Readonly<Record<string, ConditionOverride>>;

const nodes: WatchedNode[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.stop();
});

/** Starts the agent on a machine, `afterMs` after its boot. The machine ends with the test. */
export async function watch(machine: WatchedMachine, prepare: (tree: OverlaidTree) => void = () => {}, afterMs = 0): Promise<WatchedNode> {
  const node = new WatchedNode(machine);
  nodes.push(node);
  prepare(node.tree);
  await node.skip(afterMs);
  if (machine.hasKubelet === true) await node.startKubelet();
  await node.start();
  return node;
}

/**
 * A machine and the whole agent on it, from the files to the list that the kubelet gets, with a clock that only the test moves. The policy is
 * the default one, unless the test changes it. The agent is killed and started, and the machine boots, as on a real node.
 */
export class WatchedNode {
  readonly #node: OracleNode;
  /** Policy of the next start. Random histories let nothing flap; here the default counts. */
  readonly #policy: { readonly flapping: object; conditions: Conditions } = { flapping: {}, conditions: {} };

  constructor({ family, files, links = {}, options = {}, hasKubelet = false }: WatchedMachine) {
    const machine = (): { readonly files: typeof files; readonly links: typeof links } => ({
      files: { 'dev/kmsg': '', 'proc/sys/kernel/random/boot_id': 'b0070000-0000-4000-8000-000000000001\n', ...files },
      links,
    });
    this.#node = new OracleNode({ family, options, machine, devices: [], faults: [], blindings: [] }, hasKubelet, this.#policy);
  }

  get tree(): OverlaidTree {
    return this.#node.tree;
  }

  get snapshot(): Snapshot {
    return this.#node.snapshot as Snapshot;
  }

  /** Health of each device in the last list to the kubelet, keyed by the id there; undefined before the first list. */
  get offered(): Readonly<Record<string, string>> | undefined {
    return this.#node.offered && Object.fromEntries(this.#node.offered);
  }

  /** Verdict of each device: its state, and the conditions that count, with their severity. */
  get verdicts(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      (this.#node.snapshot?.devices ?? []).map(({ device, verdict: { state, conditions } }) => [
        device.id,
        [state, ...conditions.map(({ type, instance, severity }) => `${[type, instance].filter(Boolean).join('/')} ${severity}`)].join(' '),
      ]),
    );
  }

  /** Codes of the problems of the reads. */
  get problems(): readonly string[] {
    return (this.#node.snapshot?.families ?? []).flatMap(({ problems }) => problems.map(({ code }) => code));
  }

  async startKubelet(): Promise<void> {
    await this.#node.kubelet.start();
  }

  async start(): Promise<void> {
    await this.#node.startAgent();
    await this.#node.refresh(0);
  }

  /** A pod with one container gets a device of a resource, or ends. Needs the kubelet. */
  hold(resource: string, id: string): void {
    this.#node.kubelet.admitPod({
      namespace: 'n',
      name: 'holder',
      uid: 'holder',
      containers: [{ name: 'main', devices: [{ resource, id }] }],
    });
  }

  release(): void {
    this.#node.kubelet.removePod('n', 'holder');
  }

  /** Time passes, with a read each half minute and at its end. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= EVERY_MS) await this.#node.refresh(Math.min(left, EVERY_MS));
    await this.#node.refresh(0);
  }

  /** Time passes without a read. */
  async skip(ms: number): Promise<void> {
    await this.#node.clock.advance(ms, () => this.#node.settle());
  }

  /** The agent is killed and starts again, with another policy if one is given. */
  async restart(conditions: Conditions = this.#policy.conditions): Promise<void> {
    this.#node.kill();
    this.#policy.conditions = conditions;
    await this.start();
  }

  /** The agent is killed, loses what it remembered, and starts again. */
  async restartWithoutState(): Promise<void> {
    this.#node.kill();
    this.#node.loseState();
    await this.start();
  }

  /** The machine boots. What `change` changes is different afterwards. */
  async reboot(change: () => void = () => {}): Promise<void> {
    this.#node.kill();
    this.#node.boot();
    this.tree.write('dev/kmsg', () => '');
    change();
    await this.start();
  }

  /** The kernel logs lines, each now. */
  log(...texts: readonly string[]): void {
    const atUsec = this.#node.clock.monotonic() * 1_000;
    for (const text of texts) this.tree.write('dev/kmsg', (log) => `${log}3,${log.split('\n').length},${atUsec},-;${text}\n`);
  }

  async stop(): Promise<void> {
    await this.#node.stop();
  }
}
