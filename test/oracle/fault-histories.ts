import { Accounts } from '../../src/accounting/accounts.ts';
import type { AccountsState } from '../../src/accounting/saved-accounts.ts';
import { Assembler } from '../../src/agent/assemble.ts';
import { createHost } from '../../src/host/host.ts';
import { FaultLedger } from '../../src/incidents/fault-ledger.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { HealthEvent } from '../../src/model/events.ts';
import type { SavedFault, SavedFaults } from '../../src/model/fault.ts';
import type { PodResources } from '../../src/model/pod-resources.ts';
import { KernelLogProbe } from '../../src/probes/nvidia/kernel-log.ts';
import type { XidLine } from '../../src/probes/nvidia/xid-line.ts';
import { savedText } from '../accounting/small-node.ts';
import { LogNode } from './log-node.ts';

const METRIC = 'device_nvidia_xid_errors_total';
const GPUS: readonly Device[] = [0, 1].map((index) => ({
  family: 'nvidia',
  id: `GPU-${index}`,
  identity: `GPU-${index}`,
  kind: 'gpu',
  aliases: [],
  pciAddress: `0000:0${index}:00.0`,
}));
const NO_STATE: SavedFaults = { marks: {}, byEvents: {}, totals: {}, own: {}, held: {} };

/** What really happened once: the fault of one process. */
interface Happened {
  readonly gpu: number;
  readonly xid: number;
  readonly pid: number;
  readonly atMs: number;
  /** The pod whose process it was. */
  readonly pod: string;
  /** Its pod alone held the GPU, and the agent knew it. */
  readonly isAlone: boolean;
  /** The run of the agent that could read the cgroup of the process while its line was written. */
  readonly run: number | undefined;
  /** The run of the agent that got an event of it, and counts events. */
  readonly toldRun: number | undefined;
  /** The log lost its lines. */
  readonly isLost: boolean;
  /** What the agent could see when it counted the fault leaves no doubt about the pod. */
  isCertain: boolean;
  /** Somebody who was counted has seen it. */
  isSeen: boolean;
}

/** What is on the disk. */
interface Disk {
  readonly faults: SavedFaults;
  readonly kept: readonly SavedFault[];
  /** The faults that were seen at that time. */
  readonly seen: ReadonlySet<Happened>;
}

/** The counts that a history leaves, as the agent and as the truth have them: `GPU 43` or `uid GPU 43` to a number. */
export interface Counts {
  readonly devices: Readonly<Record<string, number>>;
  readonly containers: Readonly<Record<string, number>>;
}

/**
 * A node on which programs fault, with an agent that is killed and starts again. It knows the truth: which faults happened, and which of
 * them a witness can have told the agent. Probe, ledger, join and accounts are real.
 */
export class FaultHistory {
  readonly #node = new LogNode();
  readonly #happened: Happened[] = [];
  readonly #waiting: XidLine[] = [];
  /** Pods on each GPU. */
  readonly #pods = new Map<number, string[]>();
  /** PIDs that the driver lists, by GPU. */
  readonly #listed = new Map<number, Map<number, string>>();
  #disk: Disk = { faults: NO_STATE, kept: [], seen: new Set() };
  #accountsOnDisk: AccountsState | undefined;
  #agent:
    | { readonly probe: KernelLogProbe; readonly assembler: Assembler; readonly accounts: Accounts; readonly ledger: FaultLedger }
    | undefined;
  /** The holders did not change since the agent last knew them. */
  #areHoldersKnown = true;
  #seq = 0;
  #pid = 100;
  readonly events: Omit<HealthEvent, 'id'>[] = [];

  /** `hasLog`: the agent can read the log. It changes only with a restart. */
  constructor(hasLog: boolean) {
    this.start(hasLog);
  }

  start(hasLog: boolean): void {
    const { clock } = this.#node;
    const ledger = new FaultLedger(100_000, this.#disk.faults, this.#disk.kept);
    for (const one of this.#happened) one.isSeen = this.#disk.seen.has(one);
    const host = createHost(this.#node.roots, clock, { known: GPUS, counted: ledger.mark('nvidia') });
    const takeXids = (): readonly XidLine[] => this.#waiting.splice(0);
    const probe = new KernelLogProbe(
      { collect: () => ({ reports: this.#reports(), problems: [], listing: 'complete' }), takeXids },
      host,
      hasLog ? this.#node.log : `${this.#node.log}-absent`,
    );
    const saved = this.#accountsOnDisk;
    const accounts = new Accounts(
      {
        ...{ staleAfterMs: 600_000, missingRetentionMs: 600_000, zeroForMs: 0, lingerMs: 10_000_000, absentForMs: 0 },
        activity: new Map(),
        isCounter: () => false,
      },
      saved === undefined ? undefined : { state: saved, savedAtMs: clock.now(), atMs: clock.monotonic() },
    );
    const assembler = new Assembler(
      { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 600_000, missingRetentionMs: 600_000 },
      (_devices, _now, faults) => {
        this.events.push(...faults);
        return new Map();
      },
      [],
      { accounts },
      ledger,
    );
    this.#agent = { probe, assembler, accounts, ledger };
    this.#waiting.length = 0;
    this.#readsLog = hasLog;
    this.#run += 1;
    this.#known.clear();
  }

  #readsLog = false;
  #run = 0;
  /** Pods on each GPU at the last look of an agent. */
  #heldBefore: ReadonlyMap<number, readonly string[]> = new Map();
  /** Processes that this run of the agent saw. */
  readonly #known = new Set<number>();

  /** A kill: what was not on the disk is lost. */
  async kill(): Promise<void> {
    await this.#agent?.probe.close();
    this.#agent = undefined;
  }

  get isRunning(): boolean {
    return this.#agent !== undefined;
  }

  setClock(byMs: number): void {
    this.#node.setWall(byMs);
  }

  pass(ms: number): Promise<void> {
    return this.#node.pass(ms);
  }

  /** Reads everything. `isSaved`: the write of the state ended before the next kill. */
  async refresh(isSaved: boolean): Promise<void> {
    const agent = this.#agent;
    if (agent === undefined) return;
    const startedMs = this.#node.clock.monotonic();
    const collection = await agent.probe.collect();
    for (const listed of this.#listed.values()) for (const pid of listed.keys()) this.#known.add(pid);
    const now = { nowMs: this.#node.clock.now(), monotonicMs: this.#node.clock.monotonic() };
    const latest = { collection, startedMs, readAtMs: now.nowMs, monotonicMs: now.monotonicMs };
    const state = { family: 'nvidia', problems: [], runs: 1, failures: 0, abandoned: 0, hung: false };
    const snapshot = agent.assembler.assemble(
      { families: [{ state, latest }], podResources: this.#answer(now.nowMs), checkpoint: this.#checkpoint() },
      now,
    );
    this.#areHoldersKnown = true;
    this.#latest = snapshot;
    for (const one of this.#happened)
      if (!one.isSeen && (one.toldRun === this.#run || (this.#readsLog && !one.isLost)) && !this.#mayGoOn(one)) this.#count(one);
    this.#heldBefore = new Map(this.#pods);
    if (!isSaved) return;
    this.#disk = JSON.parse(JSON.stringify({ faults: agent.ledger.saved, kept: agent.ledger.kept })) as Disk;
    this.#disk = { ...this.#disk, seen: new Set(this.#happened.filter(({ isSeen }) => isSeen)) };
  }

  /** Further lines of it may follow for a second after they are read, so nobody counts it yet. A history has no look of 1 to 2.4 seconds after a fault. */
  #mayGoOn({ xid, atMs }: Happened): boolean {
    return xid === 45 && this.#node.clock.monotonic() - atMs < 2_400;
  }

  /** A witness shows it now. Events name no process. */
  #count(one: Happened): void {
    one.isSeen = true;
    // The account of a container that ended before is closed.
    const isOpen = this.#heldBefore.get(one.gpu)?.includes(one.pod) === true;
    one.isCertain = isOpen && (one.isAlone || (this.#readsLog && (one.run === this.#run || this.#known.has(one.pid))));
  }

  #latest: ReturnType<Assembler['assemble']> | undefined;

  /** The accounts are in a file of their own, which is written at other times. */
  saveAccounts(): void {
    if (this.#agent !== undefined) this.#accountsOnDisk = JSON.parse(savedText({ accounts: this.#agent.accounts })) as AccountsState;
  }

  /** Another set of pods gets a GPU. */
  hold(gpu: number, pods: readonly string[]): void {
    this.#pods.set(gpu, [...pods]);
    this.#listed.set(gpu, new Map());
    this.#areHoldersKnown = false;
  }

  podsOf(gpu: number): readonly string[] {
    return this.#pods.get(gpu) ?? [];
  }

  /** A process begins. `isListed`: the driver lists it. */
  process(gpu: number, pod: string, isListed: boolean): number {
    const pid = ++this.#pid;
    if (isListed) this.#listed.get(gpu)?.set(pid, pod);
    return pid;
  }

  /** A process faults `count` times in a moment. `isVisible`: its cgroup can be read at that moment. `isLost`: the log loses the lines. */
  fault(
    gpu: number,
    pod: string,
    pid: number,
    xid: number,
    { count, isVisible, isLost = false }: { count: number; isVisible: boolean; isLost?: boolean },
  ): void {
    if (isVisible) this.#node.process(pid, uidOf(pod));
    const address = `0000:0${gpu}:00`;
    const usec = Math.round(this.#node.clock.monotonic() * 1_000);
    const record = (text: string): string => `4,${++this.#seq},${usec + (this.#seq % 1_000)},c;NVRM: Xid (PCI:${address}): ${text}\n`;
    const told = `${xid}, pid=${pid}, name=job`;
    const one = (): string =>
      xid === 13
        ? `${record('13, Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): Misaligned Address')}${record('13, Graphics Exception: ESR 0x519730=0x500000f')}${record(`13, pid=${pid}, name=job, Graphics Exception: channel 0x0000000a, Class 0000cbc0`)}`
        : record(`${told}, channel 0x0000000a`);
    const lines = Array.from({ length: count }, one).join('');
    // Newer records overwrite lost ones.
    this.#node.append(isLost ? `6,${++this.#seq},${usec},-;a flood of something else\n` : lines);
    const isAlone = this.podsOf(gpu).length === 1 && this.#areHoldersKnown;
    const isTold = this.isRunning && !this.#readsLog;
    const run = isVisible && !isLost && this.isRunning && this.#readsLog ? this.#run : undefined;
    for (let at = 0; at < count; at += 1) {
      this.#happened.push({
        gpu,
        xid,
        pid,
        atMs: this.#node.clock.monotonic(),
        pod,
        isAlone,
        run,
        toldRun: isTold ? this.#run : undefined,
        isLost,
        isCertain: false,
        isSeen: false,
      });
      if (!this.isRunning) continue;
      const event: XidLine = {
        kind: 'xid',
        pciAddress: `${address}.0`,
        xid,
        text: 'by the library',
        isEvent: true,
        cameAtMs: this.#node.clock.monotonic(),
      };
      this.#waiting.push(event, ...(xid === 13 ? [event, event] : []));
    }
  }

  /** What the agent has counted. */
  counted(): Counts {
    const devices: Record<string, number> = {};
    const containers: Record<string, number> = {};
    for (const { device, readings } of this.#latest?.devices ?? [])
      for (const { metric, labels, value } of readings) if (metric === METRIC) devices[`${device.id} ${labels?.xid}`] = Number(value);
    for (const { uid, device, counters = [] } of this.#latest?.usage?.containers ?? [])
      for (const { metric, labels, value } of counters) {
        if (metric === METRIC) containers[`${uid} ${device.slice('nvidia/'.length)} ${labels?.xid}`] = Number(value);
      }
    return { devices, containers };
  }

  /** What it must have counted. `possible`: all faults of each container. `most`: what it may have counted of faults whose lines are lost, too. */
  truth(): Counts & { readonly possible: Counts['containers']; readonly most: Counts['devices'] } {
    const devices: Record<string, number> = {};
    const containers: Record<string, number> = {};
    const possible: Record<string, number> = {};
    const most: Record<string, number> = {};
    const add = (counts: Record<string, number>, key: string): void => {
      counts[key] = (counts[key] ?? 0) + 1;
    };
    for (const { gpu, xid, pod, isSeen, isCertain, isLost } of this.#happened) {
      const device = `GPU-${gpu} ${xid}`;
      add(possible, `${uidOf(pod)} ${device}`);
      if (isSeen || isLost) add(most, device);
      if (!isSeen) continue;
      add(devices, device);
      if (isCertain) add(containers, `${uidOf(pod)} ${device}`);
    }
    return { devices, containers, possible, most };
  }

  /** The faults of the list, with repeats. */
  get listed(): readonly SavedFault[] {
    return this.#agent?.ledger.kept ?? [];
  }

  async end(): Promise<void> {
    await this.kill();
    this.#node.remove();
  }

  #reports(): readonly DeviceReport[] {
    return GPUS.map((device, gpu) => ({
      device,
      read: {
        readings: [],
        findings: [],
        processes: [...(this.#listed.get(gpu) ?? [])].map(([pid, pod]) => ({ pid, name: 'job', podUid: uidOf(pod) })),
      },
    }));
  }

  #answer(nowMs: number): PodResources {
    const allocations = [...this.#pods].flatMap(([gpu, pods]) => pods.map((pod) => allocation(gpu, pod)));
    return {
      allocations,
      held: new Set(),
      exclusive: [],
      podExclusive: [],
      answeredAtMs: nowMs,
      answeredMonotonicMs: this.#node.clock.monotonic(),
    };
  }

  #checkpoint() {
    return [...this.#pods].flatMap(([gpu, pods]) =>
      pods.map((pod) => ({ podUid: uidOf(pod), container: pod, resource: 'nvidia.com/gpu', deviceIds: [`GPU-${gpu}`] })),
    );
  }
}

const uidOf = (pod: string): string => `00000000-0000-4000-8000-${pod.padStart(12, '0')}`;

const allocation = (gpu: number, pod: string): Allocation => ({
  namespace: 'proof',
  pod,
  container: pod,
  resource: 'nvidia.com/gpu',
  deviceId: `GPU-${gpu}`,
  numaNodes: [],
});
