import { Pod } from '../../src/generated/pods/v1alpha1/api.ts';
import { podsApiOptions } from '../../src/kubelet/options.ts';
import { minutes } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { shared } from '../../src/model/shared-metrics.ts';
import { family } from '../../src/probes/nvidia/index.ts';
import { TestPodsApi } from '../kubelet/support/pods-api.ts';
import { hardwareOf } from '../support/hardware.ts';
import type { Choose } from '../support/seeded.ts';
import type { OracleFamily } from './family.ts';
import { contradictions } from './held.ts';
import type { Life } from './lives.ts';
import { INTERVAL_MS, OracleNode } from './node.ts';
import {
  BUSY_AFTER_MS,
  type GpuTruth,
  IDLE_AFTER_MS,
  type Load,
  type TruePod,
  type TrueProcess,
  UserKnowledge,
  useOf,
} from './user-knowledge.ts';

const GPUS = [0, 1] as const;
const XML = 'bin/nvidia-smi.xml';
const { files, links, resources } = hardwareOf(family, { nvidia: GPUS.length }, 30_000);
const UUIDS = resources.find(({ resource }) => resource === 'nvidia.com/gpu')?.deviceIds ?? [];
const SMI = { 'smi-path': '{root}/bin/nvidia-smi', source: 'smi' };
const machine = { files: { ...files, 'proc/stat': 'btime 1893456000\n' }, links };
const oracle: OracleFamily = { family, options: SMI, machine: () => machine, devices: [], faults: [], blindings: [] };

const MIB = 1_048_576;
const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, '0');
const containerOf = ({ uid }: TruePod): string => uid.replaceAll('-', '').repeat(2);

/** Figures of a GPU in the document of its driver, by what it does. */
const FIGURES: Readonly<Record<Load, Readonly<Record<string, string>>>> = {
  rest: { gpu_util: '0 %', memory_util: '0 %', sm_clock: '345 MHz', instant_power_draw: '72.10 W', average_power_draw: '72.10 W' },
  held: { gpu_util: '100 %', memory_util: '0 %', sm_clock: '120 MHz', instant_power_draw: '122.40 W', average_power_draw: '122.40 W' },
  work: { gpu_util: '90 %', memory_util: '40 %', sm_clock: '1980 MHz', instant_power_draw: '610.00 W', average_power_draw: '610.00 W' },
  unseen: { gpu_util: '90 %', memory_util: '40 %', sm_clock: '1980 MHz', instant_power_draw: '610.00 W', average_power_draw: '610.00 W' },
};

interface Account {
  readonly allocated: number;
  readonly free: number;
  readonly shares: ReadonlyMap<string, number>;
  readonly busy: number;
  readonly idle: number;
}

/** A node with two GPUs, whose pods and processes come and go. */
export class UserLife implements Life {
  readonly story: string[] = [];
  readonly #choose: Choose;
  readonly #node: OracleNode;
  readonly #api: TestPodsApi | undefined;
  readonly #known = [new UserKnowledge(), new UserKnowledge()] as const;
  readonly #loads: [Load, Load] = ['rest', 'rest'];
  #pods: readonly TruePod[] = [];
  /** The pods of the checkpoint, which is written when a pod gets devices. */
  #written: readonly TruePod[] = [];
  #processes: readonly TrueProcess[] = [];
  #count = 0;
  readonly #accounts: (Account | undefined)[] = [undefined, undefined];

  constructor(choose: Choose) {
    this.#choose = choose;
    const hasNames = choose(2) === 0;
    this.#node = new OracleNode(oracle, true, {}, ({ podResources, usage }, { checkpoint }) => ({
      // A busy machine delays an answer, which is no fault here.
      podResources: { ...podResources, checkpoint, timeout: minutes(5) },
      usage: { ...usage, 'idle-after': IDLE_AFTER_MS, 'busy-after': BUSY_AFTER_MS },
      ...(this.#api && { podsApi: { ...defaultValues(podsApiOptions), socket: this.#api.socket } }),
    }));
    if (hasNames) this.#api = new TestPodsApi(`${this.#node.root}/kubelet`);
    if (hasNames) this.story.push('the Pods API tells names');
  }

  async begin(): Promise<void> {
    this.#show();
    await this.#api?.start();
    await this.#node.start();
  }

  async end(): Promise<void> {
    await this.#api?.stop();
    for (const { namespace, name } of this.#pods) this.#node.kubelet.removePod(namespace, name);
    await this.#node.stop();
  }

  async live(): Promise<readonly string[]> {
    const gpu = this.#choose(2);
    const kind = this.#choose(100);
    if (kind < 28) this.#startPod(gpu);
    else if (kind < 40) this.#endPod();
    else if (kind < 66) this.#startProcess(gpu);
    else if (kind < 78) this.#endProcess();
    else if (kind < 90) this.#toggleLoad(gpu);
    else if (kind < 93) {
      this.story.push('the kubelet starts again');
      await this.#node.kubelet.restart();
    } else await this.#restart(kind >= 97);
    this.#show();
    return await this.#tick([1, 1, 2, 5, 9, 16][this.#choose(6)] as number);
  }

  async #tick(times: number): Promise<readonly string[]> {
    this.story.push(`${times} collections`);
    for (let time = 0; time < times; time += 1) {
      await this.#node.read();
      const found = [...GPUS.flatMap((gpu) => this.#violations(gpu)), ...this.#node.differences];
      if (found.length > 0) return [`at the collection ${time + 1}`, ...found];
      await this.#node.clock.advance(INTERVAL_MS, () => this.#node.settle());
    }
    return [];
  }

  #truth(gpu: number): GpuTruth {
    const holders = this.#pods.filter(({ holds }) => holds === gpu);
    const isUnclear = ({ container }: TruePod): boolean =>
      this.#api === undefined && this.#written.filter((pod) => pod.holds === gpu && pod.container === container).length > 1;
    return {
      holders,
      processes: this.#processes.filter((process) => process.gpu === gpu),
      load: this.#load(gpu),
      unclear: holders.filter(isUnclear),
    };
  }

  #load(gpu: number): Load {
    return this.#processes.some((process) => process.gpu === gpu) ? 'work' : (this.#loads[gpu] as Load);
  }

  #violations(gpu: number): readonly string[] {
    const known = this.#known[gpu] as UserKnowledge;
    const truth = this.#truth(gpu);
    const expected = known.look(truth, this.#node.clock.monotonic());
    const state = this.#node.snapshot?.devices.find(({ device }) => device.uuid === UUIDS[gpu]);
    if (state === undefined) return [`GPU ${gpu} is not listed`];
    const { conditions, pending = [] } = state.verdict;
    const types = (list: readonly { readonly type: string }[]): ReadonlySet<string> => new Set(list.map(({ type }) => type));
    const wrong = [...contradictions(expected, types(conditions), types(pending))];
    const before = this.#accounts[gpu];
    const account = this.#account(state.key);
    this.#accounts[gpu] = account;
    if (known.isSettled) wrong.push(...this.#wrongUse(gpu, truth, before, account));
    const says = [...types(conditions), ...[...types(pending)].map((type) => `[${type}]`)].join(', ');
    return wrong.map((text) => `GPU ${gpu} (${says}): ${text}`);
  }

  #wrongUse(gpu: number, truth: GpuTruth, before: Account | undefined, now: Account): readonly string[] {
    const use = useOf(truth);
    const snapshot = this.#node.snapshot;
    const key = snapshot?.devices.find(({ device }) => device.uuid === UUIDS[gpu])?.key;
    const state = snapshot?.devices.find((one) => one.key === key);
    const nameOf = (uid: string): string => (this.#api === undefined ? uid : (this.#pods.find((pod) => pod.uid === uid)?.name ?? uid));
    const wrong: string[] = [];
    const users = (state?.users ?? []).map(({ pod, uid }) => pod ?? uid).sort();
    const trueUsers = use.users.map(nameOf).sort();
    if (users.join() !== trueUsers.join()) wrong.push(`users are ${users.join()} and not ${trueUsers.join()}`);
    const told = new Map(
      (snapshot?.containerReadings ?? []).flatMap(({ pod, device, readings }) =>
        device !== state?.device.id
          ? []
          : [...readings].flatMap(({ metric, value }) => (metric === shared.memoryUsed.name ? [[pod, Number(value) / MIB] as const] : [])),
      ),
    );
    const isAlone = truth.holders.length === 1 && use.users.length === 0;
    for (const pod of this.#pods) {
      const name = truth.holders.includes(pod) ? pod.name : nameOf(pod.uid);
      const own = use.mib.get(pod.uid) ?? 0;
      const value = told.get(name) ?? 0;
      // The only holder has what the GPU tells, with what is of no pod.
      const isOfGpu = isAlone && truth.holders.includes(pod) && value === truth.processes.reduce((sum, { mib }) => sum + mib, 0);
      if (value !== own && !isOfGpu) wrong.push(`${name} has ${value} MiB and not ${own}`);
      told.delete(name);
    }
    for (const [name, value] of told) wrong.push(`${name}, which does not run, has ${value} MiB`);
    if (before === undefined) return wrong;
    const [passed, interval] = [now.allocated - before.allocated + (now.free - before.free), INTERVAL_MS / 1_000];
    if (Math.abs(passed - interval) > 0.1) wrong.push(`its account grows by ${passed} s`);
    const free = now.free - before.free;
    if (Math.abs(free - (use.isFree ? interval : 0)) > 0.1) wrong.push(`it is free for ${free} s`);
    for (const pod of this.#pods) {
      const name = truth.holders.includes(pod) ? pod.name : nameOf(pod.uid);
      const share = (now.shares.get(name) ?? 0) - (before.shares.get(name) ?? 0);
      if (Math.abs(share - (use.shares.get(pod.uid) ?? 0) * interval) > 0.1)
        wrong.push(`${name} has ${share} s and not ${(use.shares.get(pod.uid) ?? 0) * interval}`);
    }
    if (isAlone && now.busy > before.busy !== use.isWorking) wrong.push(`its holder is busy for ${now.busy - before.busy} s`);
    if (isAlone && Math.abs(now.idle - before.idle - (use.isWorking ? 0 : interval)) > 0.1)
      wrong.push(`its holder is idle for ${now.idle - before.idle} s`);
    return wrong;
  }

  #account(key: string): Account {
    const usage = this.#node.snapshot?.usage;
    const device = usage?.devices.find((one) => one.device === key);
    const own = (usage?.containers ?? []).filter((one) => one.device === key && one.endedAtMs === undefined);
    const sum = (amounts: readonly number[]): number => amounts.reduce((total, one) => total + one, 0);
    return {
      allocated: device?.allocatedSeconds ?? 0,
      free: device?.unallocatedSeconds ?? 0,
      shares: new Map(own.map(({ pod, shareSeconds }) => [pod, shareSeconds])),
      busy: sum(own.flatMap(({ busySeconds }) => Object.values(busySeconds))),
      idle: sum(own.map(({ idleSeconds }) => idleSeconds)),
    };
  }

  #startPod(gpu: number): void {
    this.#count += 1;
    const [name, uid] = [`pod-${this.#count}`, `${hex(this.#count, 8)}-0000-4000-8000-${hex(this.#count, 12)}`];
    const isHeld = this.#pods.some(({ holds }) => holds === gpu);
    const kind = this.#choose(10);
    const common = { name, uid, namespace: 'team', container: 'main', isReservation: false, isDelegated: false };
    let pod: TruePod = common;
    if (kind < 3 && !isHeld) pod = { ...common, holds: gpu };
    else if (kind < 6 && !isHeld) pod = { ...common, holds: gpu, namespace: 'kai-resource-reservation', isReservation: true };
    else if (kind < 5) pod = { ...common, holds: gpu, container: this.#choose(3) === 0 ? 'other' : 'main' };
    else if (kind < 8) pod = { ...common, isDelegated: true };
    this.story.push(
      `${name} starts: ${pod.holds === undefined ? '' : `${pod.container} holds ${gpu}`}${pod.isReservation ? ' for others' : ''}${pod.isDelegated ? 'its id does not tell the GPU' : ''}`,
    );
    const id = { resource: 'nvidia.com/gpu', id: UUIDS[gpu] as string };
    const chosen = { resource: 'volcano.sh/vgpu-number', id: `${UUIDS[gpu]}-${this.#count}` };
    const devices = pod.isDelegated ? [chosen] : pod.holds === undefined ? [] : [id];
    this.#node.kubelet.admitPod({ namespace: pod.namespace, name, uid, containers: [{ name: pod.container, devices }] });
    this.#pods = [...this.#pods, pod];
    this.#written = this.#pods;
  }

  #endPod(): void {
    const pod = this.#pods[this.#choose(Math.max(1, this.#pods.length))];
    if (pod === undefined) return;
    this.story.push(`${pod.name} ends`);
    this.#node.kubelet.removePod(pod.namespace, pod.name);
    this.#pods = this.#pods.filter((one) => one !== pod);
    this.#processes = this.#processes.filter((process) => process.pod !== pod);
  }

  /** Of a holder on its GPU, of a pod that nobody gave the GPU, or outside of pods. */
  #startProcess(gpu: number): void {
    this.#count += 1;
    const holders = this.#pods.filter(({ holds, isReservation }) => holds !== undefined && !isReservation);
    const others = this.#pods.filter(({ holds }) => holds === undefined);
    const kind = this.#choose(10);
    const from = kind < 4 ? holders : kind < 9 ? others : [];
    const pod = from[this.#choose(Math.max(1, from.length))];
    if (pod === undefined && kind < 9) return;
    const process = { pid: 1_000 + this.#count, gpu: pod?.holds ?? gpu, mib: 100 + this.#choose(5_000), ...(pod && { pod }) };
    this.story.push(`a process of ${pod?.name ?? 'no pod'} begins to use ${process.gpu} (${process.mib} MiB)`);
    this.#processes = [...this.#processes, process];
    const { tree } = this.#node;
    const path = pod === undefined ? '/system.slice/mine.service' : `/kubepods/burstable/pod${pod.uid}/${containerOf(pod)}`;
    tree.write(`proc/${process.pid}/cgroup`, () => `0::${path}\n`);
    tree.write(`proc/${process.pid}/stat`, () => `${process.pid} (python3) R ${'0 '.repeat(18)}${process.pid} 1 2 3\n`);
  }

  #endProcess(): void {
    const process = this.#processes[this.#choose(Math.max(1, this.#processes.length))];
    if (process === undefined) return;
    this.story.push(`the process ${process.pid} of ${process.pod?.name ?? 'no pod'} ends`);
    this.#processes = this.#processes.filter((one) => one !== process);
  }

  #toggleLoad(gpu: number): void {
    const load = (['rest', 'held', 'unseen'] as const)[this.#choose(3)] as Load;
    this.story.push(`without a process GPU ${gpu} does: ${load}`);
    this.#loads[gpu] = load;
  }

  async #restart(isForgetful: boolean): Promise<void> {
    this.story.push(isForgetful ? 'kill, and the state is lost' : 'kill');
    this.#node.kill();
    if (isForgetful) this.#node.loseState();
    this.#accounts.fill(undefined);
    for (const known of this.#known) known.restarted(isForgetful, this.#node.clock.monotonic());
    await this.#node.startAgent();
  }

  /** What the driver and the Pods API tell from now on. */
  #show(): void {
    this.#node.tree.write(XML, () =>
      (files[XML] as string).replaceAll(/\t<gpu id=[\s\S]*?<\/gpu>/g, (text) => {
        const gpu = UUIDS.indexOf(/<uuid>([^<]+)</.exec(text)?.[1] ?? '');
        const own = this.#processes.filter((process) => process.gpu === gpu);
        const used = own.reduce((sum, { mib }) => sum + mib, 0);
        const rows = own.map(
          ({ pid, mib }) =>
            `<process_info>\n<gpu_instance_id>N/A</gpu_instance_id>\n<compute_instance_id>N/A</compute_instance_id>\n<pid>${pid}</pid>\n<type>C</type>\n<process_name>python3</process_name>\n<used_memory>${mib} MiB</used_memory>\n</process_info>\n`,
        );
        const figures = Object.entries(FIGURES[this.#load(gpu)]);
        return figures
          .reduce((all, [name, value]) => all.replace(new RegExp(`<${name}>[^<]*<`), `<${name}>${value}<`), text)
          .replace(/(<fb_memory_usage>[\s\S]*?<used>)[^<]*/, `$1${used} MiB`)
          .replace(/<processes>[\s\S]*<\/processes>/, `<processes>\n${rows.join('')}</processes>`);
      }),
    );
    this.#api?.says(
      ...this.#pods.map((pod) =>
        Pod.encode(
          Pod.fromPartial({
            metadata: { name: pod.name, namespace: pod.namespace, uid: pod.uid },
            status: { phase: 'Running', containerStatuses: [{ name: pod.container, containerId: `containerd://${containerOf(pod)}` }] },
          }),
        ).finish(),
      ),
    );
  }
}
