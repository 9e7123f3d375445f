import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Roots } from '../../src/host/host.ts';
import { VirtualClock } from './virtual-clock.ts';

/** A machine that has a kernel log and processes, and whose clock only the test moves. */
export class LogNode {
  readonly clock = new VirtualClock();
  readonly #root = mkdtempSync(join(tmpdir(), 'log-node-'));
  readonly log = join(this.#root, 'dev/kmsg');

  constructor() {
    for (const folder of ['sys', 'proc', 'dev']) mkdirSync(join(this.#root, folder));
    writeFileSync(this.log, '');
    this.#showBoot();
  }

  /** Sets the wall clock. The kernel then tells another time of its boot. */
  setWall(byMs: number): void {
    this.clock.setWall(byMs);
    this.#showBoot();
  }

  #showBoot(): void {
    writeFileSync(join(this.#root, 'proc/stat'), `btime ${Math.floor((this.clock.now() - this.clock.monotonic()) / 1_000)}\n`);
  }

  get roots(): Roots {
    return { sysfs: join(this.#root, 'sys'), procfs: join(this.#root, 'proc'), dev: join(this.#root, 'dev') };
  }

  append(records: string): void {
    appendFileSync(this.log, records);
  }

  /** Shows the cgroup of a process of a pod. */
  process(pid: number, podUid: string): void {
    mkdirSync(join(this.#root, `proc/${pid}`), { recursive: true });
    const slice = `kubepods-pod${podUid.replaceAll('-', '_')}.slice`;
    writeFileSync(join(this.#root, `proc/${pid}/cgroup`), `0::/kubepods.slice/${slice}/cri-containerd-${'a'.repeat(64)}.scope\n`);
  }

  pass(ms: number): Promise<void> {
    return this.clock.advance(ms, () => Promise.resolve());
  }

  remove(): void {
    rmSync(this.#root, { recursive: true });
  }
}
