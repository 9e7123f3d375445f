import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { createHost, type Host } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { NvidiaProbe } from '../../../src/probes/nvidia/probe.ts';
import { childrenOf, type Element, parseDocument } from '../../../src/probes/nvidia/smi/document.ts';
import type { SimulatedHardware } from '../../../src/sim/family-simulation.ts';
import { buildMachine, readMachine } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';

export { findingIn, reportOf, valueIn } from '../../support/probed-machine.ts';

/** A clock that tests move. Its timers use real time, because real commands do. */
export class HandClock implements Clock {
  nowMs = 0;
  now(): number {
    return this.nowMs;
  }
  monotonic(): number {
    return this.nowMs;
  }
  /** Deadlines of commands use real time. */
  after(delayMs: number, run: () => void): () => void {
    return systemClock.after(delayMs, run);
  }
}

/** A machine whose nvidia-smi a test can replace between reads. */
export class Machine {
  readonly root: string;
  readonly clock = new HandClock();
  readonly host: Host;
  readonly probe: NvidiaProbe;
  /** Process groups started and not ended yet. */
  readonly running = new Set<number>();

  constructor(root: string, timeoutMs = 10_000) {
    this.root = root;
    const children = { started: (pid: number) => void this.running.add(pid), ended: (pid: number) => void this.running.delete(pid) };
    const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') };
    this.host = createHost(roots, this.clock, { children });
    const options = { 'smi-path': join(root, 'bin/nvidia-smi'), timeout: `${timeoutMs}ms` };
    this.probe = new NvidiaProbe(this.host, probeOptions(family, options));
  }

  collect(): Promise<Collection> {
    return this.probe.collect();
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  /** Replaces nvidia-smi atomically. */
  smi(script: string): void {
    this.write('bin/new', `#!/bin/sh\n${script}\n`);
    chmodSync(join(this.root, 'bin/new'), 0o755);
    renameSync(join(this.root, 'bin/new'), join(this.root, 'bin/nvidia-smi'));
  }

  /** Installs a working nvidia-smi that prints these documents. */
  show(document: string, listing = ''): void {
    this.write('bin/document.xml', document);
    this.write('bin/listing', listing);
    this.smi(`here='${join(this.root, 'bin')}'; case "$1" in -L) cat "$here/listing" ;; *) cat "$here/document.xml" ;; esac`);
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

export function emptyMachine(timeoutMs?: number): Machine {
  return new Machine(mkdtempSync(join(tmpdir(), 'device-agent-nvidia-')), timeoutMs);
}

/** Loads one of the machines in this folder. */
export function machineOf(name: string): Machine {
  return new Machine(buildMachine(readMachine(join('test/probes/nvidia', name, 'machine.yaml'))).root);
}

export function placeHardware(hardware: SimulatedHardware): Machine {
  const machine = emptyMachine();
  for (const [path, text] of Object.entries(hardware.files)) {
    machine.write(path, text);
    if (path.startsWith('bin/')) chmodSync(join(machine.root, path), 0o755);
  }
  for (const [path, target] of Object.entries(hardware.links)) {
    mkdirSync(dirname(join(machine.root, path)), { recursive: true });
    symlinkSync(target, join(machine.root, path));
  }
  return machine;
}

export const UUIDS = [0, 1, 2].map((index) => `GPU-00000000-0000-4000-8000-00000000000${index}`) as [string, string, string];

export interface GpuPart {
  readonly index?: number;
  readonly temperature?: string;
  readonly extra?: string;
}

/** A small `<gpu>` element. Its address is `0000:1<index>:00.0`. */
export function gpuText({ index = 0, temperature = '40 C', extra = '' }: GpuPart = {}): string {
  return `<gpu id="00000000:1${index}:00.0">
    <product_name>NVIDIA Test Board</product_name>
    <uuid>${UUIDS[index]}</uuid>
    <minor_number>${index}</minor_number>
    <temperature><gpu_temp>${temperature}</gpu_temp></temperature>
    ${extra}
  </gpu>`;
}

export function documentText(...gpus: readonly string[]): string {
  return `<?xml version="1.0" ?>\n<nvidia_smi_log><driver_version>580.1</driver_version>${gpus.join('\n')}</nvidia_smi_log>\n`;
}

/** The one `<gpu>` element with this content. */
export function gpuElement(content: string): Element {
  const { log } = parseDocument(documentText(`<gpu id="00000000:10:00.0">${content}</gpu>`));
  const gpu = log === undefined ? undefined : childrenOf(log, 'gpu')[0];
  if (gpu === undefined) throw new Error(`no GPU in ${content}`);
  return gpu;
}

/** An element for each `/` of a path, with the text in the innermost one. */
export function nested(path: string, text: string): string {
  return path
    .split('/')
    .reverse()
    .reduce((inner, name) => `<${name}>${inner}</${name}>`, text);
}
