import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { minutes, seconds } from '../../src/model/duration.ts';
import { family } from '../../src/probes/nvme/index.ts';
import { hardwareOf } from '../support/hardware.ts';
import type { Choose } from '../support/seeded.ts';
import type { OracleFamily } from './family.ts';
import { contradictions, type Told } from './held.ts';
import { FIRST_RECORD, LOG, ofDevice } from './kernel-log.ts';
import type { Life } from './lives.ts';
import { OracleNode } from './node.ts';

const { files, links } = hardwareOf(family, { nvme: 1 }, 30_000);
const serial =
  Object.entries(files)
    .find(([path]) => path.endsWith('/nvme0/serial'))?.[1]
    .trim() ?? '';
const SMART = `run/smart/${serial}.json`;
const machine = {
  files: { ...files, [LOG]: FIRST_RECORD, [SMART]: '{}', 'proc/stat': `btime ${Date.parse('2030-01-01T00:00:00Z') / 1_000}\n` },
  links,
};
const options = { 'smart-directory': '{root}/run/smart', 'smart-interval': '1s' };
const oracle: OracleFamily = { family, options, machine: () => machine, devices: [], faults: [], blindings: [] };

/** Lines by which a condition counts for an hour, and as long as it is withdrawn: docs/health/nvme.md. */
const LINES: Readonly<Record<string, string>> = {
  ControllerResets: 'controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10',
  CommandTimeouts: 'I/O tag 5 (1005) opcode 0x2 (Read) QID 3 timeout, aborting req_op:READ(0) size:4096',
};
const WINDOW_MS = minutes(60);
const RECOVERY_MS = minutes(10);
const EVERY_MS = seconds(50);
const SLACK_MS = seconds(110);

interface Smart {
  readonly isWarned: boolean;
  readonly used: number;
  readonly spare: number;
  readonly mediaErrors: number;
}

const SPARE_THRESHOLD = 10;

/** A drive that wears out, or dies, and whose controller is reset. The agent may start long after its lines. */
export class DriveLife implements Life {
  readonly story: string[] = [];
  readonly #choose: Choose;
  readonly #node = new OracleNode(oracle, false);
  /** Times of the latest lines, by condition. */
  readonly #loggedMs = new Map<string, number>();
  #smart: Smart;
  #hadMediaErrors = false;
  /** Start of an agent that remembers. */
  #startedMs = Number.NEGATIVE_INFINITY;
  #seq = 0;

  constructor(choose: Choose) {
    this.#choose = choose;
    this.#smart = { isWarned: choose(2) === 0, used: this.#anyUsed(), spare: 100, mediaErrors: choose(2) * 3 };
  }

  async begin(): Promise<void> {
    for (let count = this.#choose(4); count > 0; count -= 1) {
      this.#log();
      await this.#wait(this.#choose(50));
    }
    this.#tell();
    await this.#node.start();
  }

  async end(): Promise<void> {
    await this.#node.stop();
  }

  async live(): Promise<readonly string[]> {
    const kind = this.#choose(100);
    if (kind < 25) this.#log();
    else if (kind < 60) this.#change();
    else if (kind < 80) await this.#restart(kind >= 72);
    return await this.#pass(this.#choose(10));
  }

  async #pass(minutesLong: number): Promise<readonly string[]> {
    this.story.push(`${minutesLong} minutes`);
    for (let leftMs: number = minutes(minutesLong); leftMs >= 0; leftMs -= EVERY_MS) {
      this.#tell();
      await this.#node.refresh(0);
      const found = [...this.#violations(), ...this.#node.differences];
      if (found.length > 0) return [`${leftMs / 1_000} s before the end`, ...found];
      await this.#node.clock.advance(EVERY_MS, () => this.#node.settle());
    }
    return [];
  }

  #violations(): readonly string[] {
    const state = this.#node.snapshot?.devices.find(({ device }) => device.kind === 'controller');
    if (state === undefined) return ['the drive is not listed'];
    const { conditions, state: verdict, pending = [] } = state.verdict;
    const says = `${verdict} (${conditions.map(({ type, severity }) => `${type} ${severity}`).join(', ')})`;
    const wrong = contradictions(this.#expected(), new Set(conditions.map(({ type }) => type)), new Set(pending.map(({ type }) => type)));
    const { isWarned, used, spare, mediaErrors } = this.#smart;
    const isOnlyWorn = used >= 100 && spare > SPARE_THRESHOLD && mediaErrors === 0;
    const justified = isWarned && !isOnlyWorn ? 'unhealthy' : conditions.length > 0 ? 'degraded' : 'healthy';
    return [...wrong, ...(verdict === justified ? [] : [`it is ${justified}`])].map((text) => `${says}: ${text}`);
  }

  #expected(): ReadonlyMap<string, Told> {
    const { isWarned, used, spare } = this.#smart;
    const now: readonly (readonly [string, boolean])[] = [
      ['ReliabilityDegraded', isWarned],
      ['WornOut', used >= 100],
      ['SpareLow', spare < SPARE_THRESHOLD],
    ];
    const nowMs = this.#node.clock.monotonic();
    return new Map<string, Told>([
      ...now.flatMap(([type, holds]): [string, Told][] => (holds ? [[type, 'counts']] : [])),
      ...(this.#hadMediaErrors ? [['MediaErrors', 'may'] as const] : []),
      ...[...this.#loggedMs].flatMap(([type, atMs]): [string, Told][] => {
        const ageMs = nowMs - atMs;
        if (ageMs < WINDOW_MS - SLACK_MS) return [[type, 'counts']];
        // An agent that did not run while the hour passed sees the end at its first read, and withdraws the condition after the recovery.
        const isRecovering = ageMs < WINDOW_MS + RECOVERY_MS + SLACK_MS || nowMs - this.#startedMs < RECOVERY_MS + SLACK_MS;
        return isRecovering ? [[type, 'may']] : [];
      }),
    ]);
  }

  #log(): void {
    const [type = '', line = ''] = Object.entries(LINES)[this.#choose(Object.keys(LINES).length)] ?? [];
    const nowMs = this.#node.clock.monotonic();
    this.story.push(`${type} at ${nowMs / 60_000} min`);
    this.#seq += 1;
    this.#node.tree.write(LOG, (before) => `${before}4,${this.#seq},${nowMs * 1_000},-;nvme nvme0: ${line}\n${ofDevice('c242:0', 'nvme')}`);
    this.#loggedMs.set(type, nowMs);
  }

  #anyUsed(): number {
    return [3, 100, 120][this.#choose(3)] as number;
  }

  #change(): void {
    const kind = this.#choose(4);
    const before = this.#smart;
    if (kind === 0) this.#smart = { ...before, isWarned: !before.isWarned };
    else if (kind === 1) this.#smart = { ...before, used: this.#anyUsed() };
    else if (kind === 2) this.#smart = { ...before, spare: before.spare === 100 ? 4 : 100 };
    else {
      this.#smart = { ...before, mediaErrors: before.mediaErrors + 1 };
      this.#hadMediaErrors = true;
    }
    this.story.push(JSON.stringify(this.#smart));
  }

  /** What another program writes of the drive. */
  #tell(): void {
    const { isWarned, used, spare, mediaErrors } = this.#smart;
    const log = {
      critical_warning: isWarned ? 4 : 0,
      percent_used: used,
      avail_spare: spare,
      spare_thresh: SPARE_THRESHOLD,
      media_errors: mediaErrors,
    };
    this.#node.tree.write(SMART, () => JSON.stringify(log));
    const atSeconds = this.#node.clock.now() / 1_000;
    utimesSync(join(this.#node.root, SMART), atSeconds, atSeconds);
  }

  async #restart(isForgetful: boolean): Promise<void> {
    this.story.push(isForgetful ? 'kill, and the state is lost' : 'kill');
    this.#node.kill();
    if (isForgetful) this.#node.loseState();
    if (this.#choose(3) === 0) this.#change();
    await this.#wait(this.#choose(40));
    if (this.#choose(3) === 0) this.#log();
    await this.#wait(this.#choose(40));
    this.#tell();
    this.#startedMs = isForgetful ? Number.NEGATIVE_INFINITY : this.#node.clock.monotonic();
    await this.#node.startAgent();
    await this.#node.settle();
  }

  async #wait(minutesLong: number): Promise<void> {
    this.story.push(`${minutesLong} minutes without an agent`);
    await this.#node.clock.advance(minutes(minutesLong), () => this.#node.settle());
  }
}
