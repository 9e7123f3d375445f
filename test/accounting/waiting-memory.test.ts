import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type SavedUsage, USAGE_FORMAT } from '../../src/accounting/saved-accounts.ts';
import { AccountingService } from '../../src/agent/usage.ts';
import { SavedStateFile } from '../../src/host/fs/saved-state.ts';
import { boot, HandClock, Log, settingsIn } from './disk-agent.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-waiting-'));
  boot(folder, 'first');
});
afterEach(() => rmSync(folder, { recursive: true }));

it('keeps what is known of the work of each container beside the accounts', async () => {
  const clock = new HandClock();
  const waiting = { 'team/job-0/main@1': { usualBytes: 1e9, stepSeconds: 30, lastProgressMs: 5, longestWaitMs: 7, run: 'c0ffee' } };
  const saved: SavedUsage = { times: { savedAtMs: 1, sinceBootMs: 1 }, containers: {}, waiting };
  const file = new SavedStateFile(join(folder, 'state/usage.json'), USAGE_FORMAT, 'first', 1e6);
  expect(await file.write({ ...saved }, undefined, true)).toBeUndefined();
  const log = new Log();
  const { waiting: tracker } = await AccountingService.open(settingsIn(folder), log, clock);
  expect(log.lines).toEqual([]);
  // The container is known before its devices are.
  const held = { namespace: 'team', pod: 'job-0', container: 'main', resource: 'example.com/device', device: 'nvidia/gpu0', sinceMs: 1 };
  const nothing = { allocatedSeconds: 0, shareSeconds: 0, busySeconds: {}, idleSeconds: 0, unobservedSeconds: 0 };
  tracker.step({ devices: [], usage: { containers: [{ ...held, ...nothing }], devices: [] }, nowMs: 1, monotonicMs: 1 });
  expect(tracker.state()).toEqual(waiting);
  tracker.step({ devices: [], usage: { containers: [], devices: [] }, nowMs: 2, monotonicMs: 2 });
  expect(tracker.state()).toEqual({});
});
