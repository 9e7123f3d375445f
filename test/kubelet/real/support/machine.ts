import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { familyLoaders } from '../../../../src/probes/families.ts';
import type { DeviceFamily } from '../../../../src/probes/family.ts';
import { simulatedFamilies } from '../../../../src/sim/families.ts';
import type { KernelLine, Scenario } from '../../../../src/sim/family-simulation.ts';
import { kernelLogText } from '../../../../src/sim/kernel-log.ts';
import { TreeWriter } from '../../../../src/sim/tree-writer.ts';

export const families: readonly DeviceFamily[] = await Promise.all(Object.values(familyLoaders).map((load) => load()));

export function familyNamed(name: string): DeviceFamily {
  const found = families.find((family) => family.name === name);
  if (found === undefined) throw new Error(`no family ${name}`);
  return found;
}

/** Hardware of all families as files; it stands still unless it is changed or moved on. */
export class Machine {
  readonly root = mkdtempSync(join(tmpdir(), 'device-agent-machine-'));
  readonly #writer = new TreeWriter(this.root);
  readonly #paths: string[] = [];
  readonly #options: string[] = [];
  readonly #counts: Scenario['counts'];

  constructor(counts: Scenario['counts']) {
    this.#counts = counts;
    const boot = 'proc/sys/kernel/random';
    for (const folder of ['sys', boot, 'dev', 'bin']) mkdirSync(join(this.root, folder), { recursive: true });
    writeFileSync(join(this.root, boot, 'boot_id'), 'b0070000-0000-4000-8000-000000000001\n');
    const lines: KernelLine[] = [];
    for (const { name: family, simulation } of simulatedFamilies) {
      const hardware = simulation.simulate({ counts, elapsedMs: 0 });
      this.#writer.apply(hardware);
      lines.push(...(hardware.kernelLog ?? []));
      this.#paths.push(...Object.keys(hardware.files));
      for (const [name, value] of Object.entries(hardware.options ?? {})) {
        this.#options.push(`--probe.${family}.${name}=${value.replaceAll('{root}', this.root)}`);
      }
    }
    this.#writer.apply({ files: { 'dev/kmsg': kernelLogText(lines) }, links: {} });
  }

  /** What an agent must be told to find it. */
  flags(): string[] {
    const paths = [`--path.sysfs=${this.root}/sys`, `--path.procfs=${this.root}/proc`, `--path.dev=${this.root}/dev`];
    return [...paths, '--refresh.slow=0s', `--state.file=${this.root}/state/health.json`, ...this.#options];
  }

  /** Moves the hardware on to what it has done until then. What {@link change} wrote stays only where that is no other value. */
  moveOn(scenario: Omit<Scenario, 'counts'>): void {
    for (const { simulation } of simulatedFamilies) this.#writer.apply(simulation.simulate({ ...scenario, counts: this.#counts }));
  }

  /** Changes files in place, named by the end of their path. */
  change(values: Readonly<Record<string, string>>): void {
    const files = Object.fromEntries(Object.entries(values).map(([ending, text]) => [this.#file(ending), `${text}\n`]));
    this.#writer.apply({ files, links: {} });
  }

  pullCable(device: string): void {
    this.change({ [`${device}/ports/1/state`]: '1: DOWN', [`${device}/ports/1/phys_state`]: '2: Polling' });
  }

  plugCable(device: string): void {
    this.change({ [`${device}/ports/1/state`]: '4: ACTIVE', [`${device}/ports/1/phys_state`]: '5: LinkUp' });
  }

  /** From now on a read of the file does not come back: a pipe that nobody writes to takes its place. */
  hang(ending: string): void {
    const path = join(this.root, this.#file(ending));
    execFileSync('mkfifo', [`${path}.pipe`]);
    // As with an attribute that the kernel removed: a descriptor that is still open reads nothing of it.
    truncateSync(path);
    renameSync(`${path}.pipe`, path);
  }

  /** Lets the reads return that {@link hang} blocked. */
  release(ending: string): void {
    writeFileSync(join(this.root, this.#file(ending)), '', { flag: 'r+' });
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  #file(ending: string): string {
    const found = this.#paths.filter((path) => path.endsWith(ending));
    if (found.length !== 1) throw new Error(`${found.length} files end in ${ending}`);
    return found[0] as string;
  }
}
