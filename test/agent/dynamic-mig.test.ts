import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { AgentCore } from '../../src/agent/core.ts';
import { HealthService } from '../../src/agent/health.ts';
import { createHost } from '../../src/host/host.ts';
import { CdiReader } from '../../src/kubelet/claims/cdi-reader.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { PodResources } from '../../src/model/pod-resources.ts';
import type { Probe } from '../../src/probes/family.ts';
import { family } from '../../src/probes/nvidia/index.ts';
import type { StartReader } from '../../src/supervisor/messages.ts';
import { VirtualClock } from '../oracle/virtual-clock.ts';
import { documentOf, listingOf } from '../probes/nvidia/scripted-document.ts';
import { scriptedLibrary } from '../probes/nvidia/scripted-machine.ts';
import { hopper, MIB, type ScriptedNode } from '../probes/nvidia/scripted-script.ts';
import { probeOptions } from '../support/probe-options.ts';
import { repetitions } from '../support/repetitions.ts';
import { scriptedReaders } from '../support/scripted-reader.ts';
import { seeded } from '../support/seeded.ts';
import { allocation, podResources } from '../support/snapshots.ts';
import { coreSettings } from './core-settings.ts';

const HISTORIES = Number(process.env.MIG_HISTORIES ?? repetitions(2, 5));
const FIRST = Number(process.env.MIG_SEED ?? 1);
/** GPU instances of one profile on one GPU. The driver gives an id again as soon as its instance is destroyed. */
const PLACES = [7, 8, 9];
const INTERVAL_MS = 10_000;
const WITHIN_MS = 1_000;

/** The kubelet as the agent's poller sees it. Each test sets what it lists. */
const kubelet = vi.hoisted(() => ({ list: (): unknown => undefined, later: (_run: () => void): void => {} }));
vi.mock('../../src/kubelet/poller.ts', () => ({
  createPodResourcesPoller: ({ onChange }: { onChange(): void }) => {
    let current = { allocations: [], held: new Set(), exclusive: [], podExclusive: [] } as unknown;
    let running: Promise<void> | undefined;
    return {
      current: () => current,
      watch() {},
      close() {},
      refresh: () => {
        running ??= new Promise((done) =>
          kubelet.later(() => {
            const answer = kubelet.list();
            kubelet.later(() => {
              current = answer;
              running = undefined;
              onChange();
              done();
            });
          }),
        );
        return running;
      },
    };
  },
}));

/** Reads of files and commands that run. They take no time of the virtual clock. */
const busy = new Set<Promise<unknown>>();
function tracked<T>(work: Promise<T>): Promise<T> {
  busy.add(work);
  void work.finally(() => busy.delete(work));
  return work;
}
const { read } = CdiReader.prototype;
CdiReader.prototype.read = function (claims) {
  return tracked(read.call(this, claims));
};

interface Instance {
  readonly uuid: string;
  readonly gi: number;
}
interface Pod extends Instance {
  readonly name: string;
  /** Since when the kubelet lists it. */
  listedMs?: number;
}

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

/** A node with one split GPU, NVIDIA's driver of claims, a kubelet and the agent, on one clock. */
class MigNode {
  readonly clock = new VirtualClock();
  readonly root = mkdtempSync(join(tmpdir(), 'device-agent-mig-'));
  readonly wrong: string[] = [];
  readonly pods: Pod[] = [];
  readonly #source: 'nvml' | 'nvidia-smi';
  readonly #choose: (below: number) => number;
  readonly #library: ReturnType<typeof scriptedLibrary>;
  #instances: readonly Instance[] = [];
  #listed: readonly Pod[] = [];
  #made = 0;
  #core: AgentCore | undefined;

  constructor(source: 'nvml' | 'nvidia-smi', seed: number) {
    this.#source = source;
    this.#choose = seeded(seed);
    for (const folder of ['sys/bus/pci/devices', 'proc/driver/nvidia-caps', 'proc/driver/nvidia', 'dev', 'cdi', 'bin'])
      mkdirSync(join(this.root, folder), { recursive: true });
    this.#library = scriptedLibrary(this.root, this.#gpu());
    const minors = PLACES.flatMap((gi) => [`gpu0/gi${gi}/access ${capOf(gi)}`, `gpu0/gi${gi}/ci0/access ${capOf(gi) + 1}`]);
    writeFileSync(join(this.root, 'proc/driver/nvidia-caps/mig-minors'), `${minors.join('\n')}\n`);
    writeFileSync(join(this.root, 'proc/driver/nvidia/version'), '');
    const smi = join(this.root, 'bin/nvidia-smi');
    writeFileSync(smi, `#!/bin/sh\ncase "$1" in -L) cat ${smi}.list ;; -q) cat ${smi}.xml ;; esac\n`);
    chmodSync(smi, 0o755);
    this.#show();
    kubelet.list = () => ({ ...podResources(this.#listed.map(claimOf)), answeredAtMs: this.clock.now() }) satisfies PodResources;
    kubelet.later = (run) => void this.clock.after(this.#choose(20), run);
  }

  async start(): Promise<void> {
    const texts = this.#source === 'nvml' ? { source: 'nvml', 'nvml-library': this.#library.path } : { source: 'nvidia-smi' };
    const options = probeOptions(family, { ...texts, 'smi-path': join(this.root, 'bin/nvidia-smi') });
    const base = coreSettings([{ family, options: options as never }], this.root, '');
    const settings = {
      ...base,
      roots: { sysfs: join(this.root, 'sys'), procfs: join(this.root, 'proc'), dev: join(this.root, 'dev'), kmsg: 'none' },
      cdi: { dirs: [join(this.root, 'cdi')] },
    } as typeof base;
    const logger = createLogger({ level: 'error', format: 'text' }, { write: () => true });
    const health = await HealthService.open(settings, logger, this.clock, false);
    const core = new AgentCore(settings, health, logger, this.clock, { start: this.#readers });
    this.#core = core;
    ended.push(async () => {
      await core.close();
      await health.close();
      rmSync(this.root, { recursive: true, force: true });
    });
    core.store.subscribe(() => this.#check());
    const tick = (): void => {
      void core.refresh();
      this.clock.after(INTERVAL_MS, tick);
    };
    tick();
  }

  pass(ms: number): Promise<void> {
    return this.clock.advance(ms, () => this.#settle());
  }

  /** Prepares a claim of a new pod: makes the instance, writes the spec, and then the kubelet lists the pod. */
  async prepare(): Promise<void> {
    const free = PLACES.filter((gi) => !this.#instances.some((one) => one.gi === gi));
    const gi = free[this.#choose(free.length)];
    if (gi === undefined) return;
    this.#made += 1;
    const pod: Pod = { name: `p${this.#made}`, gi, uuid: `MIG-00000000-0000-4000-8000-${String(this.#made).padStart(12, '0')}` };
    this.pods.push(pod);
    this.#instances = [...this.#instances, pod];
    this.#show();
    await this.pass(this.#choose(200));
    writeFileSync(this.#specOf(pod), JSON.stringify(specOf(pod)));
    this.#specsChanged();
    await this.pass(this.#choose(100));
    this.#listed = [...this.#listed, pod];
    pod.listedMs = this.clock.monotonic();
    this.clock.after(WITHIN_MS, () => this.#mustHold(pod));
  }

  /** Ends a pod: destroys its instance, deletes the spec, and later the kubelet lists the pod no more. */
  async unprepare(): Promise<void> {
    const running = this.#listed.filter((one) => this.#instances.includes(one));
    const pod = running[this.#choose(running.length)];
    if (pod === undefined) return;
    this.#instances = this.#instances.filter((one) => one !== pod);
    this.#show();
    await this.pass(this.#choose(200));
    rmSync(this.#specOf(pod));
    this.#specsChanged();
    this.clock.after(this.#choose(300), () => {
      this.#listed = this.#listed.filter((one) => one !== pod);
    });
  }

  /** The devices of the snapshot that the agent should not list. */
  stale(): readonly string[] {
    const alive = new Set(this.#instances.map(({ uuid }) => uuid));
    return (this.#core?.store.snapshot()?.devices ?? []).flatMap(({ device }) =>
      device.kind === 'mig' && !alive.has(device.id) ? [device.id] : [],
    );
  }

  #gpu(): ScriptedNode {
    const instances = this.#instances.map(({ uuid, gi }) => ({
      uuid,
      gi,
      ci: 0,
      name: 'NVIDIA H100 MIG 1g.10gb',
      memory_total: 9_984 * MIB,
    }));
    return { gpus: [{ ...hopper(0, { mig_current: 1, mig_pending: 1 }), instances: { ...instances } }] };
  }

  #show(): void {
    this.#library.write(this.#gpu());
    writeFileSync(join(this.root, 'bin/nvidia-smi.xml'), documentOf(this.#gpu()));
    writeFileSync(join(this.root, 'bin/nvidia-smi.list'), listingOf(this.#gpu()));
  }

  #specOf({ name }: Pod): string {
    return join(this.root, 'cdi', `k8s.gpu.nvidia.com-claim_${name}.json`);
  }

  /** The agent watches the directory, and asks the kubelet after these times. */
  #specsChanged(): void {
    for (const ms of [50, 500]) this.clock.after(ms, () => void this.#core?.holders.poller.refresh());
  }

  #probe: Probe | undefined;

  /** A reader that takes some time before and after it reads. */
  readonly #readers: StartReader = scriptedReaders(
    async ({ start }, answer) => {
      if (start !== undefined)
        this.#probe = family.createProbe(createHost(start.roots, this.clock, { known: start.known }), start.options as never);
      const wait = (below: number): Promise<void> => new Promise((resolve) => void this.clock.after(this.#choose(below), resolve));
      await wait(100);
      const collection = await tracked(Promise.resolve((this.#probe as Probe).collect()));
      await wait(100);
      answer(collection);
    },
    () => void this.#probe?.close?.(),
  );

  #check(): void {
    const snapshot = this.#core?.store.snapshot();
    for (const { allocation: held, devices } of snapshot?.allocations ?? []) {
      const own = this.pods.find(({ name }) => name === held.pod);
      if (devices.some((key) => key !== `nvidia/${own?.uuid}`)) this.wrong.push(`${this.clock.monotonic()} ms: ${held.pod} has ${devices}`);
    }
    for (const { key, verdict } of snapshot?.devices ?? [])
      if (verdict.state !== 'healthy') this.wrong.push(`${this.clock.monotonic()} ms: ${key} is ${verdict.state}`);
  }

  #mustHold(pod: Pod): void {
    const state = this.#core?.store.snapshot()?.allocations.find(({ allocation: { pod: name } }) => name === pod.name);
    if (this.#instances.includes(pod) && state?.devices[0] !== `nvidia/${pod.uuid}`)
      this.wrong.push(`${this.clock.monotonic()} ms: ${pod.name} holds ${state?.devices ?? 'nothing, and is not listed'}`);
  }

  /** Waits for the reads of files and commands that run. */
  async #settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (busy.size === 0) continue;
      await Promise.all(busy);
      quiet = -1;
    }
  }
}

const capOf = (gi: number): number => gi * 9;

const specOf = ({ name, gi }: Pod): object => ({
  cdiVersion: '0.5.0',
  kind: 'k8s.gpu.nvidia.com/claim',
  devices: [
    {
      name: `${name}-gpu-0-mig-1g10gb-19-${gi}`,
      containerEdits: {
        deviceNodes: ['nvidia0', ...[capOf(gi), capOf(gi) + 1].map((cap) => `nvidia-caps/nvidia-cap${cap}`)].map((node) => ({
          path: `/dev/${node}`,
        })),
      },
    },
  ],
});

function claimOf({ name, gi }: Pod): Allocation {
  const device = `gpu-0-mig-1g10gb-19-${gi}`;
  const cdiDevices = [`k8s.gpu.nvidia.com/claim=${name}-${device}`];
  const claim = { name: `c-${name}`, namespace: 'ml', driver: 'gpu.nvidia.com', pool: 'node', device, cdiDevices };
  return { ...allocation({ namespace: 'ml', pod: name, resource: claim.driver, deviceId: `node/${device}` }), claim };
}

it.each(['nvml', 'nvidia-smi'] as const)('joins each claim with its own MIG instance within a second, by %s', async (source) => {
  for (let seed = FIRST; seed < FIRST + HISTORIES; seed += 1) {
    const choose = seeded(seed * 7_919);
    const node = new MigNode(source, seed);
    await node.start();
    await node.pass(choose(INTERVAL_MS));
    for (let step = 0; step < 12; step += 1) {
      await (choose(2) === 0 ? node.prepare() : node.unprepare());
      await node.pass(choose(3) === 0 ? 0 : choose(4_000));
    }
    expect(node.wrong, `seed ${seed}`).toEqual([]);
    await node.pass(2 * INTERVAL_MS);
    expect(node.stale(), `seed ${seed}`).toEqual([]);
    expect(node.wrong, `seed ${seed}`).toEqual([]);
    for (const end of ended.splice(0)) await end();
  }
});
