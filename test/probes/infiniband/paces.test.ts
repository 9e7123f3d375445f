import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import { family } from '../../../src/probes/infiniband/index.ts';
import { TreeWriter } from '../../../src/sim/tree-writer.ts';
import { hardwareOf } from '../../support/hardware.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { unless } from '../../support/skipped.ts';

const HCAS = 2;
/** Files of one simulated port. */
const LEVELS = 3;
const COUNTERS = 53;
const IO = '/proc/thread-self/io';

let root: string;
let nowMs: number;
const clock: Clock = { now: () => nowMs, monotonic: () => nowMs, after: () => () => {} };

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-paces-'));
  nowMs = 1_000_000;
  const hardware = hardwareOf(family, { infiniband: HCAS }, 1_000);
  new TreeWriter(root).apply(hardware);
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

interface Looked {
  readonly collection: Collection;
  /** Number of read system calls of the thread for this collection. */
  readonly reads: number;
}

/** A probe that has read the tree twice. All files that it keeps open are open, and every value was read at this moment. */
function probeWith(options: Readonly<Record<string, string>>): { lookAfter(ms: number): Looked } {
  const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev'), kmsg: '' };
  const probe = family.createProbe(createHost(roots, clock), probeOptions(family, options));
  const look = (): Looked => {
    const before = readCalls();
    const collection = probe.collect() as Collection;
    return { collection, reads: readCalls() - before - OWN_READS };
  };
  look();
  nowMs += 60_000;
  look();
  return {
    lookAfter(ms) {
      nowMs += ms;
      return look();
    },
  };
}

const readCalls = (): number => Number(/^syscr: (\d+)/m.exec(readFileSync(IO, 'utf8'))?.[1]);
/** Number of read calls that reading the count itself adds. */
const OWN_READS = existsSync(IO) ? -readCalls() + readCalls() : 0;

const put = (path: string, text: string): void => writeFileSync(path, `${text}\n`);

describe.skipIf(!existsSync(IO))(`each class of files is read at its own pace${unless(existsSync(IO), `${IO} is not there`)}`, () => {
  it('all of them except the slow facts at each collection, by default', () => {
    const probe = probeWith({});
    for (let n = 0; n < 3; n += 1) expect(probe.lookAfter(1_000).reads).toBe(HCAS * (LEVELS + COUNTERS));
  });

  it('slow facts at facts-interval, the firmware version among them', () => {
    const firmware = ({ collection }: Looked): string | undefined => collection.reports[0]?.device.firmware;
    const probe = probeWith({ 'facts-interval': '10s' });
    put(join(root, 'sys/class/infiniband/mlx5_0/fw_ver'), '99.1.1');
    const early = probe.lookAfter(5_000);
    expect(firmware(early)).not.toBe('99.1.1');
    expect(early.reads).toBe(HCAS * (LEVELS + COUNTERS));
    const due = probe.lookAfter(5_000);
    expect(firmware(due)).toBe('99.1.1');
    expect(due.reads).toBeGreaterThan(HCAS * (LEVELS + COUNTERS));
  });

  it.each([[[5_000, 5_000]], [[10_000]]])('slow facts only from files that were replaced, after %j ms', (looks) => {
    const probe = probeWith({ 'facts-interval': '10s' });
    const directory = join(root, 'sys/class/infiniband/mlx5_0');
    for (const [file, text] of [
      ['fw_ver', '99.1.1'],
      ['ports/1/link_layer', 'Ethernet'],
    ] as const) {
      writeFileSync(join(root, 'new'), `${text}\n`);
      renameSync(join(root, 'new'), join(directory, file));
    }
    // A removed file, whose open descriptor would still give a value.
    rmSync(join(directory, 'hca_type'));
    const [report] = looks.map((ms) => probe.lookAfter(ms)).at(-1)?.collection.reports ?? [];
    expect(report?.device).toMatchObject({ firmware: '99.1.1' });
    expect(report?.device.model).toBeUndefined();
    expect([...(report?.read?.readings ?? [])].find(({ metric }) => metric === 'device_infiniband_port_info')?.labels).toMatchObject({
      link_layer: 'Ethernet',
    });
  });
});
