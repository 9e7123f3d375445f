import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkDeclaration } from '../../../src/config/families/family-file.ts';
import type { Clock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Declaration } from '../../../src/probes/declared/declaration.ts';
import { familyOf } from '../../../src/probes/declared/family.ts';
import type { DeviceFamily, Probe } from '../../../src/probes/family.ts';
import { probeOptions } from '../../support/probe-options.ts';

/** The invented accelerator of the tutorial. */
export const ACME = readFileSync('test/probes/declared/acme.yaml', 'utf8');

const LINES = `
lines:
  - event: dead
    drivers: [acme]
    text: "firmware dead, code {code}*"
    means: the firmware stopped with code {code}
    source: acme.c
    condition: FirmwareDead
  - { event: started, drivers: [acme], text: "ready, version #.#", means: the driver started, source: acme.c, ends: [FirmwareDead] }
  - event: queue-timeout
    drivers: [acme]
    text: "acme_drv warns: {card} queue # timed out (pid {pid})"
    device: { class: acme, name: "{card}" }
    means: a queue timed out
    source: acme.c
    condition: QueueTimeouts
    fault: { type: QueueTimeout, severity: degraded, remedy: restart-workload }
conditions:
  - { type: FirmwareDead, severity: fatal, meaning: The firmware stopped., remedy: reset, source: acme.c, log: {} }
  - { type: QueueTimeouts, severity: degraded, meaning: Queues time out., remedy: inspect, source: acme.c, log: { above: 1, within: 1h } }
`;
const [added = '', conditions = ''] = LINES.split('conditions:');
/** The same with lines of its driver in the kernel log. */
export const ACME_WITH_LINES = ACME.replace(/^conditions:\n/m, `${added}conditions:${conditions}`);

/** The declaration of a text that must be valid. */
export async function declarationOf(text: string): Promise<Declaration> {
  const { declaration, problems } = await checkDeclaration(text);
  if (declaration === undefined) throw new Error(problems.map(({ line, message }) => `${line}: ${message}`).join('\n'));
  return declaration;
}

export const declaredFamily = async (text: string): Promise<DeviceFamily> =>
  familyOf({ declaration: await declarationOf(text), origin: 'administrator' });

/** Files of cards of the invented accelerator, from the root of a machine. */
export function acmeFiles(cards: number): {
  readonly files: Readonly<Record<string, string>>;
  readonly links: Readonly<Record<string, string>>;
} {
  const files: Record<string, string> = {};
  const links: Record<string, string> = {};
  for (let n = 0; n < cards; n += 1) {
    const card = `sys/devices/virtual/acme/acme${n}`;
    links[`sys/class/acme/acme${n}`] = `../../devices/virtual/acme/acme${n}`;
    const content = { serial: `X1A${n}`, model: 'X1', fw_version: '1.2', state: 'ok', busy_percent: '37', ecc_uncorrected: '0' };
    for (const [name, text] of Object.entries(content)) files[`${card}/${name}`] = `${text}\n`;
    files[`${card}/hwmon/hwmon${n}/temp1_input`] = '45300\n';
    for (const queue of [0, 1]) files[`${card}/queue${queue}/jobs`] = `${100 * n + queue}\n`;
  }
  return { files, links };
}

/** A clock that a test moves. */
export class HandClock implements Clock {
  nowMs = 0;
  now = (): number => this.nowMs;
  monotonic = (): number => this.nowMs;
  after = (): (() => void) => () => {};
}

export function probeOn(
  family: DeviceFamily,
  root: string,
  clock: Clock = new HandClock(),
  options: Readonly<Record<string, string>> = {},
): Probe {
  // A machine without a log is read without one.
  const kmsg = existsSync(join(root, 'dev/kmsg')) ? {} : { kmsg: '' };
  const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev'), ...kmsg }, clock);
  return family.createProbe(host, probeOptions(family, options));
}

/** One look of a declared family at a machine. */
export async function lookAt(family: DeviceFamily, root: string, options: Readonly<Record<string, string>> = {}): Promise<Collection> {
  const probe = probeOn(family, root, undefined, options);
  try {
    return await probe.collect();
  } finally {
    await probe.close?.();
  }
}
