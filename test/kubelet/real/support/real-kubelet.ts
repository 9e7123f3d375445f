import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { describe, inject } from 'vitest';
import type { AnyKubelet } from './any-kubelet.ts';
import type { Admission, Given, Refused, StartSettings, ToldCapacity, ToldDevices, ToldList, ToldPod, WantedPod } from './exchanged.ts';
import './global-setup.ts';

const PROGRAM = inject('kubeletProgram');
/** The release of Kubernetes whose code the program has. */
export const RELEASE = inject('kubeletRelease');

/** Skipped where the program cannot be built. */
export const describeReal = describe.skipIf(PROGRAM === '');

type Line = { readonly id?: number; readonly answer?: unknown; readonly error?: string; readonly event?: string };
interface Waiting {
  resolve(answer: never): void;
  reject(error: Error): void;
}

/** A kubelet's own device code in a process of its own. A restart is another process in the same directory. */
export class RealKubelet implements AnyKubelet {
  readonly directory = mkdtempSync(join(tmpdir(), 'kubelet-'));
  readonly #args: readonly string[];
  readonly #waiting = new Map<number, Waiting>();
  #asked = 0;
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined;
  #log = '';
  /** Events of all processes so far. */
  readonly events: Line[] = [];
  /** The lists of plugins that the device manager took, the first one first. */
  readonly lists: ToldList[] = [];

  constructor(args: readonly string[] = []) {
    this.#args = args;
  }

  get podResourcesSocket(): string {
    return join(this.directory, 'pod-resources/kubelet.sock');
  }

  get pluginDirectory(): string {
    return join(this.directory, 'device-plugins');
  }

  get registry(): string {
    return join(this.directory, 'plugins_registry');
  }

  get checkpoint(): string {
    return join(this.pluginDirectory, 'kubelet_internal_checkpoint');
  }

  /** What an agent must be told to find it. */
  flags(): string[] {
    return [
      `--podresources.socket=${this.podResourcesSocket}`,
      `--podresources.checkpoint=${this.checkpoint}`,
      `--plugin.dir=${this.pluginDirectory}`,
      `--plugin.registry-dir=${this.registry}`,
    ];
  }

  async start({ podsAfterMs = 0 }: StartSettings = {}): Promise<void> {
    const after = podsAfterMs === Number.POSITIVE_INFINITY ? -1 : podsAfterMs;
    const child = spawn(PROGRAM, ['-dir', this.directory, '-pods-after', `${after}`, ...this.#args], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    child.stderr.on('data', (chunk: Buffer) => {
      this.#log = (this.#log + chunk.toString()).slice(-20_000);
    });
    await new Promise<void>((resolve, reject) => {
      child.once('exit', () => {
        if (this.#child === child) this.#child = undefined;
        reject(new Error(`the kubelet ended\n${this.#log}`));
        for (const { reject: fail } of this.#waiting.values()) fail(new Error(`the kubelet ended before it answered\n${this.#log}`));
        this.#waiting.clear();
      });
      createInterface({ input: child.stdout }).on('line', (line) => {
        const told = JSON.parse(line) as Line;
        if (told.event === 'list') this.lists.push(told as Line & ToldList);
        else if (told.event !== undefined) this.events.push(told);
        if (told.event === 'ready') resolve();
        if (told.id !== undefined) this.#answered(told);
      });
    });
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** Ends the process; its socket files stay, as those of a kubelet do. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  }

  async close(): Promise<void> {
    await this.end('SIGKILL');
    rmSync(this.directory, { recursive: true, force: true });
  }

  admit(pod: WantedPod): Promise<Admission> {
    return this.ask('admit', { pod });
  }

  /** Fails unless the pod was admitted. */
  async run(pod: WantedPod): Promise<Readonly<Record<string, Given>>> {
    const { refused, given } = await this.admit(pod);
    if (refused !== undefined || given === undefined) throw new Error(`${refused?.reason}: ${refused?.message}`);
    return given;
  }

  remove({ namespace, name }: Pick<WantedPod, 'namespace' | 'name'>): Promise<unknown> {
    return this.ask('remove', { namespace, name });
  }

  finish({ namespace, name }: Pick<WantedPod, 'namespace' | 'name'>, phase: 'Succeeded' | 'Failed' = 'Succeeded'): Promise<unknown> {
    return this.ask('end', { namespace, name, phase });
  }

  /** By container, resource and device id. */
  status({ namespace, name }: Pick<WantedPod, 'namespace' | 'name'>): Promise<Record<string, Record<string, Record<string, string>>>> {
    return this.ask('status', { namespace, name });
  }

  capacity(): Promise<ToldCapacity> {
    return this.ask('capacity');
  }

  /** `capacity/allocatable` of one resource, as for the node's status. */
  async amounts(resource: string): Promise<string> {
    const { capacity, allocatable } = await this.capacity();
    return `${capacity[resource]}/${allocatable[resource]}`;
  }

  async list(): Promise<readonly ToldPod[]> {
    return (await this.ask<{ readonly pod_resources?: readonly ToldPod[] }>('list')).pod_resources ?? [];
  }

  /** Device ids of one resource that can be handed out, sorted. */
  async allocatable(resource: string): Promise<readonly string[]> {
    const { devices = [] } = await this.ask<{ readonly devices?: readonly ToldDevices[] }>('allocatable');
    return [...new Set(devices.filter(({ resource_name }) => resource_name === resource).flatMap(({ device_ids }) => device_ids))].sort();
  }

  checkpointText(): string {
    return readFileSync(this.checkpoint, 'utf8');
  }

  deliver(): Promise<readonly Refused[]> {
    return this.ask('deliver');
  }

  takeDown({ namespace, name }: Pick<WantedPod, 'namespace' | 'name'>): Promise<unknown> {
    return this.ask('down', { namespace, name });
  }

  startAgain({ namespace, name }: Pick<WantedPod, 'namespace' | 'name'>, container: string): Promise<Given> {
    return this.ask('start', { namespace, name, container });
  }

  age(resource: string, forMs: number): Promise<unknown> {
    return this.ask('age', { resource, forMs });
  }

  /** Another client of the socket that asks without pause. */
  flood(forMs: number): Promise<{ readonly asked: number; readonly rejected: number }> {
    return this.ask('flood', { forMs });
  }

  ask<T>(command: string, more: object = {}): Promise<T> {
    const child = this.#child;
    if (child === undefined) throw new Error('the kubelet does not run');
    this.#asked += 1;
    const id = this.#asked;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      child.stdin.write(`${JSON.stringify({ id, do: command, ...more })}\n`);
    });
  }

  #answered({ id, answer, error }: Line): void {
    const waiting = this.#waiting.get(id as number);
    this.#waiting.delete(id as number);
    if (error === undefined) waiting?.resolve(answer as never);
    else waiting?.reject(new Error(error));
  }
}
