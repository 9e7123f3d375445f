import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { familyLoaders } from '../../src/probes/families.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { ServedNode } from '../e2e/served-node.ts';
import { PROGRAM } from '../support/program.ts';
import { type Choose, seeded } from '../support/seeded.ts';
import { seriesValue } from '../support/serve.ts';
import { DEADLINE_MS } from '../support/until.ts';

/** Only one family: a start takes half the time. */
const others = Object.keys(familyLoaders).filter((name) => name !== 'infiniband');
const HCA = 'example.com/hca';
const CARDS = ['mlx5_0', 'mlx5_1', 'mlx5_2'] as const;
/** Holds the first card all the time. */
const ANCHOR = 'anchor';
/** Holds the second card, one after the other. */
const SHORT = CARDS[1];
/** Its cable is pulled. */
const PULLED = CARDS[2];
const EVENT = { device: CARDS[0], event: 'mlx5-command-timeout' };
/** Each look makes a page. */
const LOOK_MS = 150;
/** A refresh, and what the write of its accounts waits. */
const REFRESH_S = 0.5;

interface Agent {
  readonly name: string;
  readonly child: ChildProcess;
  readonly url: Promise<string>;
  /** Settled value of `url`. */
  address?: string | undefined;
  log: string;
  isStopped: boolean;
  /** How the history ended it. */
  sent?: NodeJS.Signals;
  readonly ended: Promise<void>;
}

/** What a pod really did, in seconds of this process. */
interface Pod {
  readonly name: string;
  readonly beganS: number;
  endedS?: number;
  /** Time in which the agents were calm and the pod was seen. */
  calmS: number;
}

const nowS = (): number => performance.now() / 1_000;

/** One node, and up to two agents on it that start, stop, go on and end in any order. What the node did is compared with what they say. */
class TwoAgents {
  readonly node = new ServedNode({
    family: infiniband,
    counts: { infiniband: CARDS.length },
    resource: HCA,
    config: {
      plugin: { resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }] },
      health: { flapping: { count: 100 }, conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } },
    },
    flags: ['--refresh.interval=200ms', ...others.map((name) => `--no-probe.${name}`)],
  });
  /** The older one first. */
  #agents: Agent[] = [];
  readonly #pods: Pod[] = [];
  #calmSinceS: number | undefined;
  #lines = 0;
  #isPulled = false;
  readonly #pulls: { readonly atMs: number; readonly isSeen: boolean }[] = [];
  #started = 0;
  #unasked: string | undefined;
  readonly steps: Steps = new Steps();
  readonly logs: string[] = [];

  async open(): Promise<void> {
    writeFileSync(join(this.node.root, 'proc/stat'), `btime ${Math.floor(Date.now() / 1_000 - uptimeS())}\n`);
    writeFileSync(this.#kmsg, '6,0,0,-;Linux version 7.0\n');
    await this.node.kubelet.start();
    await this.node.manager.start();
    this.#admit(ANCHOR, CARDS[0]);
  }

  async kill(): Promise<void> {
    for (const agent of this.#agents) agent.child.kill('SIGKILL');
    await Promise.all(this.#agents.map(({ ended }) => ended));
  }

  async close(): Promise<void> {
    await this.kill();
    await this.node.stop();
  }

  get #kmsg(): string {
    return join(this.node.root, 'kernel.log');
  }

  get #active(): Agent[] {
    return this.#agents.filter(({ isStopped, address }) => !isStopped && address !== undefined);
  }

  /** Nobody is stopped and nobody starts: the newest agent has state and sockets, and is responsible for what happens. */
  get #isCalm(): boolean {
    return this.#agents.length > 0 && this.#active.length === this.#agents.length;
  }

  /** One random step. Gives false when it does not fit. */
  async step(choose: Choose): Promise<boolean> {
    const one = this.#agents[choose(this.#agents.length)];
    switch (choose(12)) {
      case 0:
      case 1:
        if (this.#agents.length >= 2) return false;
        this.#start();
        // Half of the time the next step comes before it can answer.
        if (choose(2) === 0) await this.#served();
        return true;
      case 2:
        return one !== undefined && this.#send(one, 'SIGKILL');
      case 3:
        return one !== undefined && !one.isStopped && this.#send(one, 'SIGTERM');
      case 4:
        return one !== undefined && !one.isStopped && this.#send(one, 'SIGSTOP');
      case 5:
      case 6:
        return one?.isStopped === true && this.#send(one, 'SIGCONT');
      case 7:
        return await this.#pod();
      case 8:
        return await this.#fault();
      case 9:
        return await this.#cable();
      default:
        return await this.#live(0.3 + choose(10) / 10);
    }
  }

  /** Lets all go on, and compares. */
  async end(choose: Choose): Promise<void> {
    for (const agent of this.#agents) if (agent.isStopped) this.#send(agent, 'SIGCONT');
    if (this.#agents.length === 0) this.#start();
    await this.#served();
    await this.#live(0.5);
    if (this.#isPulled) await this.#cable();
    if (this.#pods.some(({ name, endedS }) => name !== ANCHOR && endedS === undefined)) await this.#pod();
    await this.#pod();
    await this.#live(1);
    await this.#pod();
    await this.#live(0.5);
    // In any order, and in half of the histories without time for a last write.
    for (const agent of choose(2) === 0 ? this.#agents : this.#agents.toReversed()) {
      await this.#send(agent, choose(2) === 0 ? 'SIGKILL' : 'SIGTERM');
    }
    this.#start();
    await this.#served();
    await this.#compare();
    const [last] = this.#agents;
    if (last !== undefined) await this.#send(last, 'SIGTERM');
  }

  #start(): void {
    this.#disturb();
    this.#started += 1;
    const name = `agent ${this.#started}`;
    const flags = [...this.node.flags(), `--path.kmsg=${this.#kmsg}`, `--health-feed.socket=${this.node.root}/health.sock`];
    const child = spawn(process.execPath, [PROGRAM, 'serve', ...flags, '--web.listen-address=127.0.0.1:0', '--log.format=json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let found = (_url: string): void => {};
    const url = new Promise<string>((resolve) => {
      found = resolve;
    });
    const agent: Agent = {
      ...{ name, child, url, log: '', isStopped: false },
      ended: new Promise<void>((resolve) => void child.once('close', () => resolve())),
    };
    const look = (chunk: Buffer): void => {
      agent.log += chunk.toString();
      const [, address] = /"address":"(http:[^"]+)"/.exec(agent.log) ?? [];
      if (address !== undefined) found(address);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    void agent.ended.then(() => {
      const status = child.exitCode ?? child.signalCode;
      this.logs.push(`${name} ended with ${status}:\n${agent.log}`);
      if (agent.sent === undefined) this.#unasked = `${name} ended by itself with ${status}`;
      this.#agents = this.#agents.filter((other) => other !== agent);
    });
    this.#agents.push(agent);
    this.steps.push(`${name} starts`);
  }

  /** Waits until each agent that is not stopped serves, and the newest has the sockets. Fails when one ended that nobody told to end. */
  async #served(): Promise<void> {
    for (const agent of this.#agents) {
      if (agent.isStopped) continue;
      await this.#wait(`${agent.name} serves`, async () => {
        agent.address ??= await Promise.race([agent.url, new Promise<undefined>((resolve) => setTimeout(resolve, 20, undefined))]);
        return agent.address !== undefined && seriesValue(await pageOf(agent), 'container_device_allocation', { pod: ANCHOR }) === 1;
      });
    }
    if (!this.#isCalm) return;
    await this.#wait('one of them alone has the state, and answers on the control socket', async () => {
      const [writer, other] = this.#agents.filter((agent) => !hasGiven(agent));
      return writer !== undefined && other === undefined && (await this.#answering()) === writer.child.pid;
    });
    const health = Object.fromEntries(CARDS.map((card) => [card, card === PULLED && this.#isPulled ? 'Unhealthy' : 'Healthy']));
    await this.#wait('the kubelet has the devices', () => JSON.stringify(sorted(this.node.list())) === JSON.stringify(health));
    this.#calmSinceS = nowS();
  }

  async #send(agent: Agent, signal: NodeJS.Signals): Promise<boolean> {
    this.#disturb();
    this.steps.push(`${signal} to ${agent.name}`);
    if (signal === 'SIGSTOP') agent.isStopped = true;
    if (signal === 'SIGCONT') agent.isStopped = false;
    if (signal === 'SIGKILL' || signal === 'SIGTERM') agent.sent = signal;
    agent.child.kill(signal);
    if (signal === 'SIGKILL' || signal === 'SIGTERM') {
      await this.#wait(`${agent.name} ends`, () => agent.child.exitCode !== null || agent.child.signalCode !== null);
      await agent.ended;
      if (
        signal === 'SIGTERM' &&
        (agent.child.exitCode !== 0 || !agent.log.includes('"signal":"SIGTERM"')) &&
        agent.log.includes('starting')
      )
        throw new Error(`${agent.name} did not end as it should: ${agent.child.exitCode ?? agent.child.signalCode}`);
    }
    return true;
  }

  /** The time until now was calm; what follows is not until all serve. */
  #disturb(): void {
    const calmS = this.#calmSinceS === undefined ? 0 : nowS() - this.#calmSinceS - REFRESH_S;
    this.#calmSinceS = undefined;
    for (const pod of this.#pods) if (pod.endedS === undefined) pod.calmS += Math.max(0, calmS);
  }

  async #needsCalm(): Promise<boolean> {
    if (!this.#isCalm && !this.#agents.some(({ isStopped }) => isStopped) && this.#agents.length > 0) await this.#served();
    if (this.#isCalm && this.#calmSinceS === undefined) await this.#served();
    return this.#calmSinceS !== undefined;
  }

  /** Begins a pod, or ends the one that runs. */
  async #pod(): Promise<boolean> {
    if (!(await this.#needsCalm())) return false;
    const running = this.#pods.find(({ name, endedS }) => name !== ANCHOR && endedS === undefined);
    const name = running?.name ?? `pod-${this.#pods.length}`;
    const isSeen = (): Promise<boolean> =>
      this.#onAll((page) => (seriesValue(page, 'container_device_allocation', { pod: name }) === 1) === (running === undefined));
    this.#disturb();
    if (running === undefined) this.#admit(name, SHORT);
    else this.node.kubelet.removePod('n', name);
    this.steps.push(`${name} ${running === undefined ? 'begins' : 'ends'}`);
    await this.#wait(`${name} is seen, or its end`, isSeen);
    if (running !== undefined) running.endedS = nowS();
    this.#calmSinceS = nowS();
    return true;
  }

  #admit(name: string, id: string): void {
    const containers = [{ name: 'c', devices: [{ resource: HCA, id, numaNodes: [] }] }];
    this.node.kubelet.admitPod({ namespace: 'n', name, uid: `uid-${name}`, containers } as never);
    this.#pods.push({ name, beganS: nowS(), calmS: 0 });
  }

  /** The driver of the first card reports a fault. */
  async #fault(): Promise<boolean> {
    if (!(await this.#needsCalm())) return false;
    this.#lines += 1;
    // The record's time is since boot, as that of the agents.
    const [, address] = /([\da-f:]+\.\d)\/infiniband/.exec(readlinkSync(join(this.node.root, 'sys/class/infiniband', CARDS[0]))) ?? [];
    const line = `mlx5_core ${address}: wait_func:1132:(pid 77): CREATE_DCT(0x710) timeout. Will cause a leak of a command resource`;
    appendFileSync(this.#kmsg, `3,${this.#lines},${Math.round(uptimeS() * 1e6)},-;${line}\n SUBSYSTEM=pci\n DEVICE=+pci:${address}\n`);
    this.steps.push(`fault ${this.#lines}`);
    await this.#wait('the fault is counted for device and container', () => this.#onAll((page) => this.#hasLines(page)));
    return true;
  }

  #hasLines(page: string): boolean {
    return (
      seriesValue(page, 'device_kernel_log_events_total', EVENT) === this.#lines &&
      // Without a fault a container has no such series.
      (seriesValue(page, 'container_device_kernel_log_events_total', { ...EVENT, pod: ANCHOR }) ?? 0) === this.#lines
    );
  }

  /** Pulls a cable, or plugs it in. */
  async #cable(): Promise<boolean> {
    if (!(await this.#needsCalm())) return false;
    this.#isPulled = !this.#isPulled;
    const before = this.#disk('health');
    const [state, phys] = this.#isPulled ? ['1: DOWN', '2: Polling'] : ['4: ACTIVE', '5: LinkUp'];
    const atMs = this.node.change({ [`${PULLED}/ports/1/state`]: state, [`${PULLED}/ports/1/phys_state`]: phys });
    if (this.#isPulled) this.#pulls.push({ atMs, isSeen: true });
    this.steps.push(this.#isPulled ? 'a cable is pulled' : 'the cable is plugged in');
    await this.#wait('each agent has the verdict', () =>
      this.#onAll((page) => seriesValue(page, 'device_healthy', { device: PULLED }) === (this.#isPulled ? 0 : 1)),
    );
    // The record of an incident is on the disk before the state that knows its event: after a kill in between both come again.
    await this.#wait('the verdict is on the disk', () => this.#disk('health') !== before);
    return true;
  }

  /** Time goes on: the figures of each agent, and the accounts on the disk. */
  async #live(seconds: number): Promise<boolean> {
    if (!(await this.#needsCalm())) return false;
    const total = (page: string): number => seriesValue(page, 'device_allocated_seconds_total', { device: CARDS[0] }) ?? 0;
    const before = await Promise.all(this.#active.map(async (agent) => total(await pageOf(agent))));
    const onDisk = this.#disk();
    const growth = async (): Promise<boolean> => {
      const pages = await Promise.all(this.#active.map(pageOf));
      return pages.every((page, at) => total(page) >= (before[at] ?? 0) + seconds);
    };
    await this.#wait(`the totals of all agents have grown by ${seconds} s`, growth);
    await this.#wait('the accounts on the disk go on', () => this.#disk() !== onDisk);
    this.steps.push(`${seconds} s pass`);
    return true;
  }

  #disk(name: 'usage' | 'health' = 'usage'): string {
    const { ino, size, mtimeNs } = statSync(join(this.node.root, `state/${name}.json`), { bigint: true, throwIfNoEntry: false }) ?? {};
    return `${ino} ${size} ${mtimeNs}`;
  }

  /** What a fresh agent knows of the whole history. */
  async #compare(): Promise<void> {
    const [agent] = this.#agents as [Agent];
    await this.#wait('all faults are counted', () => this.#onAll((page) => this.#hasLines(page)));
    const { rows } = await jsonOf<{ readonly rows: readonly UsageRow[] }>(agent, '/api/usage?by=pod');
    const told = new Map(rows.map((row) => [row.name.replace('n/', ''), row]));
    this.#disturb();
    const wrong = this.#pods.flatMap(({ name, beganS, endedS = nowS(), calmS }) => {
      const { containers = 0, allocatedSeconds = 0 } = told.get(name) ?? {};
      const most = endedS - beganS + REFRESH_S;
      const isRight = containers === 1 && allocatedSeconds >= calmS - REFRESH_S && allocatedSeconds <= most;
      return isRight ? [] : [`${name}: ${containers} containers, ${allocatedSeconds} s; at least ${calmS} s, at most ${most} s`];
    });
    const unknown = [...told.keys()].filter((name) => this.#pods.every((pod) => pod.name !== name));
    wrong.push(...unknown.map((name) => `${name} was never there`));
    const { incidents, faults } = await jsonOf<Incidents>(agent, '/api/incidents');
    const times = incidents.filter(({ device }) => device === `infiniband/${PULLED}`).map(({ time }) => Date.parse(time));
    const pulls = this.#pulls.map(({ atMs }) => atMs);
    // Changes of ten seconds are one incident.
    const unrecorded = pulls.filter((atMs) => !times.some((time) => time >= atMs - 10_500 && time <= atMs + 10_500));
    if (unrecorded.length > 0 || times.length > pulls.length)
      wrong.push(`${times.length} incidents, ${pulls.length} pulls, ${unrecorded.length} of them without one`);
    const counted = faults.filter(({ device }) => device === `infiniband/${CARDS[0]}`).reduce((sum, { count }) => sum + count, 0);
    if (counted !== this.#lines) wrong.push(`${counted} faults are kept, ${this.#lines} were reported`);
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
  }

  async #onAll(holds: (page: string) => boolean): Promise<boolean> {
    const pages = await Promise.all(this.#active.map(pageOf));
    return pages.length > 0 && pages.every(holds);
  }

  /** Fails at once when an agent ends that nobody told to. */
  async #wait(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const endS = nowS() + DEADLINE_MS / 1_000;
    for (; ; await new Promise((resolve) => setTimeout(resolve, LOOK_MS))) {
      if (this.#unasked !== undefined) throw new Error(this.#unasked);
      if (await holds()) return;
      if (nowS() > endS) throw new Error(`waited in vain until ${what}`);
    }
  }

  async #answering(): Promise<number | undefined> {
    return await new Promise((resolve) => {
      const sent = get(
        { socketPath: join(this.node.root, 'state/control.sock'), path: '/api/v1/status', agent: false, timeout: DEADLINE_MS },
        (response) => {
          response.resume().once('end', () => resolve(Number(/pid=(\d+)/.exec(String(response.headers['device-agent']))?.[1])));
          response.once('error', () => resolve(undefined));
        },
      );
      sent.once('timeout', () => sent.destroy());
      sent.once('error', () => resolve(undefined));
    });
  }
}

/** With the seconds at which each began. */
class Steps extends Array<string> {
  readonly #beganS = nowS();

  override push(...steps: readonly string[]): number {
    return super.push(...steps.map((step) => `${(nowS() - this.#beganS).toFixed(1)} s: ${step}`));
  }
}

interface UsageRow {
  readonly name: string;
  readonly containers: number;
  readonly allocatedSeconds: number;
}

interface Incidents {
  readonly incidents: readonly { readonly time: string; readonly device: string }[];
  readonly faults: readonly { readonly device: string; readonly count: number }[];
}

/** Whether a newer agent has the state of this one. */
const hasGiven = ({ log }: Agent): boolean => log.lastIndexOf('a newer agent takes over;') > log.lastIndexOf('the newer agent has ended;');
const sorted = (list: Readonly<Record<string, string>>): Record<string, string> => Object.fromEntries(Object.entries(list).sort());
const uptimeS = (): number => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);

async function pageOf({ address }: Agent): Promise<string> {
  const answer = await fetch(`${address}/metrics`, { signal: AbortSignal.timeout(30_000) }).catch(() => undefined);
  return (await answer?.text()) ?? '';
}

async function jsonOf<T>({ address }: Agent, path: string): Promise<T> {
  return (await (await fetch(address + path)).json()) as T;
}

/** Plays one history. Gives what was wrong, with its steps and the logs; undefined when all was right. */
export async function historyOfTwo(seed: number, length: number): Promise<string | undefined> {
  const choose = seeded(seed);
  const agents = new TwoAgents();
  await agents.open();
  try {
    for (let done = 0; done < length; ) if (await agents.step(choose)) done += 1;
    await agents.end(choose);
    return undefined;
  } catch (error) {
    await agents.kill();
    return `${(error as Error).message}\n${agents.steps.join('\n')}\n${agents.logs.join('\n')}`;
  } finally {
    await agents.close();
  }
}
