import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createUsageFile } from '../../src/accounting/usage-file.ts';
import { WaitingTracker } from '../../src/waiting/tracker.ts';
import { settings } from '../stall/replay.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-waiting-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const accounts = { devices: {}, active: {}, ended: {}, endedDevices: {} };
const times = { savedAtMs: 1, sinceBootMs: 1 };

it('keeps what is known of the work of each container beside the accounts', async () => {
  const path = join(folder, 'usage.json');
  const waiting = { 'team/job-0/main@1': { usualBytes: 1e9, stepSeconds: 30, lastProgressMs: 5, longestWaitMs: 7, run: 'c0ffee' } };
  expect(await createUsageFile(path, 'boot').write({ ...times, accounts, waiting }, true)).toBeUndefined();
  const { saved } = await createUsageFile(path, 'boot').read();
  expect(saved).toEqual({ ...times, accounts, waiting });
  const tracker = new WaitingTracker(settings(), saved?.waiting);
  // The container is known before its devices are.
  const held = { namespace: 'team', pod: 'job-0', container: 'main', resource: 'example.com/device', device: 'nvidia/gpu0', sinceMs: 1 };
  const nothing = { allocatedSeconds: 0, shareSeconds: 0, busySeconds: {}, idleSeconds: 0, unobservedSeconds: 0 };
  tracker.step({ devices: [], usage: { containers: [{ ...held, ...nothing }], devices: [] }, nowMs: 1, monotonicMs: 1 });
  expect(tracker.state()).toEqual(waiting);
  tracker.step({ devices: [], usage: { containers: [], devices: [] }, nowMs: 2, monotonicMs: 2 });
  expect(tracker.state()).toEqual({});
});

it('reads a file that has no such part', async () => {
  const path = join(folder, 'usage.json');
  await createUsageFile(path, 'boot').write({ ...times, accounts }, true);
  expect((await createUsageFile(path, 'boot').read()).saved).toEqual({ ...times, accounts, waiting: {} });
});
