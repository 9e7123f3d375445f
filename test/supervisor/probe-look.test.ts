import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { createHost, type Host } from '../../src/host/host.ts';
import type { Collection } from '../../src/model/collection.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { collectChecked, isPresent } from '../../src/supervisor/probe-look.ts';
import { device, listed, report } from '../support/snapshots.ts';

let root: string;
let host: Host;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-look-'));
  host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const look = (collection: Collection, meanwhile: () => void = () => {}): Promise<Collection> =>
  collectChecked(
    {
      collect: () => {
        meanwhile();
        return Promise.resolve(collection);
      },
      forget: () => {
        forgotten += 1;
      },
    },
    host,
  );
let forgotten = 0;

describe('a collection of a probe', () => {
  it.each(['class/net', 'bus/pci'])('without a trace of its family is valid when sysfs is mounted: %s', async (path) => {
    mkdirSync(join(root, 'sys', path), { recursive: true });
    const nothing = listed([], { listing: 'absent' });
    expect(await look(nothing)).toBe(nothing);
  });

  it('without a trace of its family is partial without sysfs', async () => {
    const blind = {
      listing: 'partial',
      problems: [{ code: 'sysfs-unusable', message: `${root}/sys is missing, empty or cannot be listed` }],
    };
    expect(await look(listed([], { listing: 'absent' }))).toEqual({ reports: [], ...blind });
    mkdirSync(join(root, 'sys'));
    expect(await look(listed([], { listing: 'absent' }))).toEqual({ reports: [], ...blind });
  });

  it('that found devices stays unchanged', async () => {
    const found = listed([report({ device: device({ id: 'a' }) })]);
    expect(await look(found)).toBe(found);
  });

  it.each(['sys', 'proc', 'dev'] as const)('that ran out of descriptors below /%s is partial', async (tree) => {
    const [readings, outOfBand] = [[{ metric: 'm', value: 1 }], { readings: [], findings: [] }];
    const full = { ...report({ device: device({ id: 'a' }) }), read: { readings, findings: [] }, outOfBand };
    const found = listed([full], { problems: [{ code: 'x', message: 'y' }] });
    const short = await look(found, () => {
      host[tree].shortages += 1;
    });
    expect(short).toMatchObject({ reports: [{ device: { id: 'a' }, outOfBand }], listing: 'partial' });
    expect([short.reports[0]?.read, forgotten]).toEqual([undefined, 1]);
    expect(short.problems.map(({ code }) => code)).toEqual(['x', 'descriptors-exhausted']);
    expect([(await look(found)).reports[0]?.read, forgotten], 'it is over').toEqual([full.read, 1]);
    forgotten = 0;
  });
});

describe('a family', () => {
  const sees = (family: Pick<DeviceFamily, 'isPresent'>): boolean => isPresent(family, host);

  it('may be on the machine when its check is absent or returns true', () => {
    mkdirSync(join(root, 'sys/class/net'), { recursive: true });
    expect([sees({}), sees({ isPresent: () => true }), sees({ isPresent: () => false })]).toEqual([true, true, false]);
  });

  it('may be on the machine when there is no sysfs', () => {
    expect(sees({ isPresent: () => false })).toBe(true);
  });

  it('may be on the machine when no descriptor was left for the check', () => {
    mkdirSync(join(root, 'sys/class/net'), { recursive: true });
    const blind = {
      isPresent: ({ sys }: Host): boolean => {
        sys.shortages += 1;
        return false;
      },
    };
    expect(sees(blind)).toBe(true);
  });
});
