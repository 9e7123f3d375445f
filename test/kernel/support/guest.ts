import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { EARLY_MODULES, type Kernel, takeModules } from './kernel-package.ts';
import { Monitor } from './monitor.ts';

const GUEST_SIDE = resolve('test/kernel/guest');
// The deadline of all waits: an emulated machine on a busy host starts in minutes.
const START_MS = 300_000;

/** What a command, or a page, gave. */
export interface Answer {
  /** Exit status, or status of the response. */
  readonly status: number;
  readonly output: string;
}

interface Waiting {
  readonly done: (answer: Answer) => void;
  readonly fail: (error: Error) => void;
}

/**
 * A machine with a kernel of its own, emulated, without network. It sees this machine's files as they are and keeps to itself what it
 * writes. It ends when the test's process does, for whatever reason.
 */
export class Guest {
  readonly #directory = mkdtempSync(join(tmpdir(), 'device-agent-guest-'));
  readonly #kernel: Kernel;
  readonly #devices: readonly string[];
  readonly #parameters: readonly string[];
  #server: Server | undefined;
  #socket: Socket | undefined;
  #emulator: ChildProcess | undefined;
  #hasEnded = false;
  #console = '';
  #nextId = 1;
  readonly #waiting = new Map<number, Waiting>();

  /** `devices`: further words for the emulator. `parameters`: further words of the kernel's command line. */
  constructor(kernel: Kernel, devices: readonly string[] = [], parameters: readonly string[] = []) {
    this.#kernel = kernel;
    this.#devices = devices;
    this.#parameters = parameters;
  }

  async start(): Promise<void> {
    this.#makeInitialFiles();
    this.#server = createServer().listen(this.#path('runner'));
    await once(this.#server, 'listening');
    const ready = new Promise<Answer>((done, fail) => this.#waiting.set(0, { done, fail }));
    this.#emulator = spawn('qemu-system-x86_64', this.#words(), { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#emulator.stdout, this.#emulator.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.#console += chunk.toString();
      });
    }
    this.#emulator.once('exit', () => {
      this.#hasEnded = true;
      this.#failAll('the guest ended');
    });
    const late = setTimeout(() => this.#failAll(`the guest was not there after ${START_MS} ms`), START_MS);
    this.#server.once('connection', (socket) => {
      this.#socket = socket;
      createInterface({ input: socket }).on('line', (line) => {
        const { id, ...answer } = JSON.parse(line) as Answer & { id: number };
        this.#waiting.get(id)?.done(answer);
        this.#waiting.delete(id);
      });
    });
    await ready.finally(() => clearTimeout(late));
  }

  /** Runs a line of shell; whatever it gives is given back. */
  try(command: string): Promise<Answer> {
    return this.#ask({ command });
  }

  /** Runs a line of shell that must succeed: what it printed. */
  async run(command: string): Promise<string> {
    const { status, output } = await this.try(command);
    if (status !== 0) throw new Error(`${command}\nended with ${status}:\n${output}\n${this.console()}`);
    return output;
  }

  fetch(url: string): Promise<Answer> {
    return this.#ask({ url });
  }

  /** A line for the emulator's own monitor, by which hardware is handled: what it printed. */
  async monitor(line: string): Promise<string> {
    const monitor = await Monitor.connect(this.#path('monitor'));
    try {
      return await monitor.say(line);
    } finally {
      monitor.close();
    }
  }

  /** The end of what the kernel and the first process said. */
  console(): string {
    return this.#console.slice(-4_000);
  }

  async stop(): Promise<void> {
    this.#socket?.destroy();
    this.#server?.close();
    if (this.#emulator !== undefined && !this.#hasEnded) {
      const exited = once(this.#emulator, 'exit');
      this.#emulator.kill('SIGKILL');
      await exited;
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #path(name: string): string {
    return join(this.#directory, name);
  }

  #ask(question: { readonly command: string } | { readonly url: string }): Promise<Answer> {
    const id = this.#nextId++;
    if (this.#hasEnded) throw new Error(`the guest ended:\n${this.console()}`);
    return new Promise((done, fail) => {
      this.#waiting.set(id, { done, fail });
      this.#socket?.write(`${JSON.stringify({ id, ...question })}\n`);
    });
  }

  #failAll(why: string): void {
    for (const { fail } of this.#waiting.values()) fail(new Error(`${why}:\n${this.console()}`));
    this.#waiting.clear();
  }

  #words(): string[] {
    const share = (tag: string, path: string): string[] => [
      '-virtfs',
      `local,path=${path},mount_tag=${tag},security_model=none,readonly=on,multidevs=remap`,
    ];
    const variables = { node: process.execPath, checkout: process.cwd() };
    const line = [
      'console=ttyS0',
      'quiet',
      'panic=-1',
      // On a busy machine the emulated timer is late, and the kernel would take it for one that does not work.
      'no_timer_check',
      ...this.#parameters,
      ...Object.entries(variables).map(([name, value]) => `${name}="${value}"`),
    ];
    return [
      ...['-machine', 'q35', '-accel', 'tcg,thread=multi', '-cpu', 'max', '-smp', '2', '-m', '2048'],
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-serial', 'stdio'],
      ...['-kernel', this.#kernel.image, '-initrd', this.#path('initial'), '-append', line.join(' ')],
      ...share('host', '/'),
      ...share('modules', dirname(this.#kernel.modules)),
      ...['-device', 'virtio-serial-pci', '-chardev', `socket,id=runner,path=${this.#path('runner')}`],
      ...['-device', 'virtserialport,chardev=runner,name=tests'],
      ...['-qmp', `unix:${this.#path('monitor')},server=on,wait=off`],
      ...this.#devices,
    ];
  }

  /** The kernel's first files: a shell and the modules by which it gets at all others. */
  #makeInitialFiles(): void {
    const files = this.#path('files');
    mkdirSync(join(files, 'bin'), { recursive: true });
    cpSync(join(GUEST_SIDE, 'init'), join(files, 'init'));
    cpSync(execFileSync('which', ['busybox'], { encoding: 'utf8' }).trim(), join(files, 'bin/busybox'), { dereference: true });
    takeModules(resolve(this.#kernel.modules, '../../..'), files, this.#kernel.release, EARLY_MODULES);
    const names = readdirSync(files, { recursive: true, encoding: 'utf8' });
    execFileSync('busybox', ['cpio', '-o', '-H', 'newc', '-F', this.#path('initial')], {
      cwd: files,
      input: names.join('\n'),
      stdio: ['pipe', 'ignore', 'ignore'],
    });
  }
}
