import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type SavedUsage, USAGE_FORMAT } from '../../src/accounting/saved-accounts.ts';
import { SavedStateFile } from '../../src/host/fs/saved-state.ts';
import { createStateFile } from '../../src/health/journal/state-file.ts';
import { IncidentStore } from '../../src/incidents/store.ts';
import { createChangeLog } from '../../src/log/changes.ts';
import { createLogger } from '../../src/log/logger.ts';

/**
 * A directory that an agent left when it was killed, on a simulated node with an FPGA that had had a nonfatal error, an adapter whose port was
 * down, and two GPUs. The number is that of the format of the health state.
 */
const VERSIONS = [5] as const;
/** The boot that the simulated node had. */
const BOOT = 'unknown';
/** When the adapter became unhealthy, from the log of that agent. */
const DOWN_SINCE = { 5: 1_795_660_763_105 };
/** Milliseconds for which GPU 1 was allocated, from the file by another program. */
const ALLOCATED = { 5: 5_186.956690999999 };

const folder = mkdtempSync(join(tmpdir(), 'upgrade-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function copied(version: number, name = `state-${version}`): string {
  const to = join(folder, name);
  cpSync(new URL(`state-${version}`, import.meta.url), to, { recursive: true });
  return to;
}

const changes = () => createChangeLog(createLogger({ level: 'error', format: 'text' }));

describe.each(VERSIONS)('the files beside a health state of version %i', (version) => {
  it('lose no verdict, no condition and no count', async () => {
    const read = await createStateFile({ path: join(copied(version), 'health.json'), bootId: BOOT }).read();
    expect(read.ignored).toBeUndefined();
    const devices = Object.values(read.state?.devices ?? {});
    expect(devices).toHaveLength(5);
    const [adapter] = devices.filter(({ device }) => device.family === 'infiniband');
    expect(adapter?.verdict).toEqual({ state: 'unhealthy', sinceMs: DOWN_SINCE[version] });
    expect(adapter?.transitions).toEqual({ unhealthy: 1 });
    expect(Object.keys(adapter?.conditions ?? {})).toEqual(['PortDown/1']);
    const [fpga] = devices.filter(({ device }) => device.id === '0010:21:00.0');
    expect(fpga?.transitions).toEqual({ degraded: 1, healthy: 1 });
    expect(fpga?.activations['NonfatalError/nonfatal_errors']).toHaveLength(1);
  });

  it('lose no incident', async () => {
    const directory = join(copied(version), 'incidents');
    const store = await IncidentStore.open({ directory, keep: 100, keepBytes: 1e8 }, changes());
    const [id = ''] = readdirSync(directory).map((name) => name.replace(/\.json$/, ''));
    expect(store.list()).toEqual([expect.objectContaining({ id, device: 'fpga/0010:21:00.0' })]);
    expect(await store.read(id)).toMatchObject({ record: { id, device: expect.anything() } });
  });
});

describe.each(VERSIONS)('a usage state of version %i', (version) => {
  it('loses no account', async () => {
    const read = await new SavedStateFile(join(copied(version), 'usage.json'), USAGE_FORMAT, BOOT, 1e6).read();
    const { containers } = read.body as unknown as SavedUsage;
    const ofGpu = Object.values(containers).filter(({ usage }) => usage.device.endsWith('0001'));
    expect(ofGpu).toMatchObject([{ usage: { namespace: 'training', container: 'worker', resource: 'nvidia.com/gpu' } }]);
    expect(ofGpu[0]?.usage.allocatedSeconds).toBe(ALLOCATED[version] / 1_000);
  });
});

describe('files of a newer agent', () => {
  it('stay as they were under another name, and are told', async () => {
    const directory = copied(5, 'newer');
    const path = join(directory, 'health.json');
    const newer = readFileSync(path, 'utf8').replace('"version":5', '"version":99');
    writeFileSync(path, newer);
    const read = await createStateFile({ path, bootId: BOOT }).read();
    expect(read).toMatchObject({ ignored: 'other-version', message: expect.stringContaining('has version 99') });
    const kept = readdirSync(directory).filter((other) => other.startsWith('health.json.'));
    expect(kept).toHaveLength(1);
    expect(readFileSync(join(directory, kept[0] as string), 'utf8')).toBe(newer);
  });
});
