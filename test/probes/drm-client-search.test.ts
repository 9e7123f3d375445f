import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ReplayedTree } from '../../src/host/recorded/recorded-errors.ts';
import { ClientSearch } from '../../src/probes/kit/drm/client-search.ts';
import { unless } from '../support/skipped.ts';

const PACE = { most: 100, everyMs: 0 };

/** Processes by pid: `seen` shows a node of a card, `blind` shows names of descriptors alone, `closed` not even these. */
function procOf(processes: Readonly<Record<number, 'seen' | 'blind' | 'closed'>>, own?: number): ReplayedTree {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-proc-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const errors = new Map<string, string>();
  for (const [pid, kind] of Object.entries(processes)) {
    for (const name of ['fd', 'fdinfo']) mkdirSync(join(root, pid, name), { recursive: true });
    // The kernel refuses to tell the target, so no link can be read.
    if (kind === 'blind') writeFileSync(join(root, pid, 'fd/4'), '');
    else symlinkSync('/dev/dri/renderD128', join(root, pid, 'fd/4'));
    if (kind !== 'seen') errors.set(join(root, pid, 'fdinfo'), 'EACCES');
    if (kind === 'closed') errors.set(join(root, pid, 'fd'), 'EACCES');
  }
  if (own !== undefined) symlinkSync(String(own), join(root, 'self'));
  return new ReplayedTree(root, undefined, (path) => errors.get(path));
}

const at = (nowMs: number) => ({ nowMs, graceMs: 0 });

describe('the search for clients', () => {
  it('finds the nodes of cards that processes have open', () => {
    const search = new ClientSearch(procOf({ 7: 'seen' }), PACE);
    expect(search.find(at(0))).toEqual([{ pid: 7, files: [{ fd: '4', node: 'renderD128' }] }]);
    expect([search.isPartial, search.isRefused, search.isComplete]).toEqual([false, false, true]);
  });

  it.each(['blind', 'closed'] as const)('knows nothing of a process that is %s, and says so', (kind) => {
    const search = new ClientSearch(procOf({ 7: kind, 8: 'seen' }), PACE);
    expect(search.find(at(0)).map(({ pid }) => pid)).toEqual([8]);
    expect([search.isPartial, search.isRefused, search.isComplete]).toEqual([true, false, false]);
  });

  it('does not take its own files for those of another process', () => {
    const search = new ClientSearch(procOf({ 7: 'blind', 8: 'closed', 9: 'seen' }, 9), PACE);
    search.find(at(0));
    expect([search.isPartial, search.isRefused]).toEqual([true, true]);
  });

  it('says the same at each search, whichever processes it lists', () => {
    const search = new ClientSearch(procOf({ 7: 'blind', 8: 'blind', 9: 'seen' }, 9), { most: 1, everyMs: 0 });
    const told = [0, 10_000, 20_000, 30_000].map((nowMs) => {
      search.find(at(nowMs));
      return search.isPartial;
    });
    expect(told).toEqual([true, true, true, true]);
  });
});

const isRoot = process.getuid?.() === 0 && spawnSync('setpriv', ['--version']).status === 0;

describe.skipIf(!isRoot)(`the rights of the chart on the processes of this kernel${unless(isRoot, 'it needs root and setpriv')}`, () => {
  /** Whether the search of a root with only these capabilities sees a file of the process. */
  function sees(pid: number, capabilities: string): boolean {
    const script = `import { readlinkSync, readFileSync } from 'node:fs';
try { readlinkSync('/proc/${pid}/fd/0'); readFileSync('/proc/${pid}/fdinfo/0'); } catch (error) { process.exit(3); }`;
    const words = [
      `--bounding-set=-all${capabilities}`,
      '--inh-caps=-all',
      '--no-new-privs',
      process.execPath,
      '--input-type=module',
      '-e',
    ];
    const { status, stderr } = spawnSync('setpriv', [...words, script], { encoding: 'utf8' });
    expect([0, 3], stderr).toContain(status);
    return status === 0;
  }

  async function started(...words: readonly string[]): Promise<number> {
    const child = spawn('setpriv', [...words, 'sh', '-c', 'echo ready; exec sleep 600'], { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    return child.pid ?? 0;
  }

  it('are enough for processes of root and of other users with two capabilities, and not with fewer', async () => {
    const root = await started('--no-new-privs');
    const other = await started('--reuid=65534', '--regid=65534', '--clear-groups');
    const seen = (capabilities: string): readonly boolean[] => [sees(root, capabilities), sees(other, capabilities)];
    expect(seen('')).toEqual([false, false]);
    expect(seen(',+sys_ptrace')).toEqual([true, false]);
    expect(seen(',+dac_read_search')).toEqual([false, false]);
    expect(seen(',+sys_ptrace,+dac_read_search')).toEqual([true, true]);
  });
});
