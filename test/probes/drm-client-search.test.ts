import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StepGuard } from '../../src/host/fs/step-guard.ts';
import { Tree } from '../../src/host/fs/tree.ts';
import { failing, ReplayedTree } from '../../src/host/recorded/replayed-tree.ts';
import { ClientSearch } from '../../src/probes/kit/drm/clients.ts';
import { WatchedGuard } from '../support/guarded.ts';
import { unless } from '../support/skipped.ts';

const PACE = { most: 100, everyMs: 0 };
const REFUSED = 'the kernel hides the open files of processes';
const TOO_MANY = 'a process has more open files than the searches have listed so far';
const CARD = '/dev/dri/renderD128';

/** Processes by pid: `seen` shows a node of a card, `blind` shows names of descriptors alone, `closed` not even these. */
function procOf(processes: Readonly<Record<number, 'seen' | 'blind' | 'closed'>>, own?: number): ReplayedTree {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-proc-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [pid, kind] of Object.entries(processes)) {
    mkdirSync(join(root, pid));
    if (kind === 'seen') mkdirSync(join(root, pid, 'fdinfo'));
    else writeFileSync(join(root, pid, 'fdinfo'), failing('EACCES'));
    if (kind === 'closed') {
      writeFileSync(join(root, pid, 'fd'), failing('EACCES'));
      continue;
    }
    mkdirSync(join(root, pid, 'fd'));
    // The kernel refuses to tell the target, so no link can be read.
    if (kind === 'blind') writeFileSync(join(root, pid, 'fd/4'), '');
    else symlinkSync('/dev/dri/renderD128', join(root, pid, 'fd/4'));
  }
  if (own !== undefined) symlinkSync(String(own), join(root, 'self'));
  return new ReplayedTree(root);
}

/** No search takes time, unless the test says so. */
const STILL = (): number => 0;

const at = (nowMs: number) => ({ nowMs, graceMs: 0 });

describe('the search for clients', () => {
  it('finds the nodes of cards that processes have open', () => {
    const search = new ClientSearch(procOf({ 7: 'seen' }), PACE, STILL);
    expect(search.find(at(0))).toEqual([{ pid: 7, files: [{ fd: '4', node: 'renderD128' }] }]);
    expect([search.hidden, search.isRefused, search.isComplete]).toEqual([undefined, false, true]);
  });

  it.each(['blind', 'closed'] as const)('knows nothing of a process that is %s, and says so', (kind) => {
    const search = new ClientSearch(procOf({ 7: kind, 8: 'seen' }), PACE, STILL);
    expect(search.find(at(0)).map(({ pid }) => pid)).toEqual([8]);
    expect([search.hidden, search.isRefused, search.isComplete]).toEqual([REFUSED, false, false]);
  });

  it('does not take its own files for those of another process', () => {
    const search = new ClientSearch(procOf({ 7: 'blind', 8: 'closed', 9: 'seen' }, 9), PACE, STILL);
    search.find(at(0));
    expect([search.hidden, search.isRefused]).toEqual([REFUSED, true]);
  });

  it('says the same at each search, whichever processes it lists', () => {
    const search = new ClientSearch(procOf({ 7: 'blind', 8: 'blind', 9: 'seen' }, 9), { most: 1, everyMs: 0 }, STILL);
    const told = [0, 10_000, 20_000, 30_000].map((nowMs) => {
      search.find(at(nowMs));
      return search.hidden;
    });
    expect(told).toEqual([REFUSED, REFUSED, REFUSED, REFUSED]);
  });
});

/** Processes by pid, with the number of their open files. The last file of a process in `users` is the node of a card. */
class CrowdedProc extends Tree {
  namesRead = 0;
  readonly #files: Map<number, number>;
  readonly #users: ReadonlySet<number>;

  constructor(files: Readonly<Record<number, number>>, users: readonly number[] = [], guard?: StepGuard) {
    super('/nowhere', guard);
    this.#files = new Map(Object.entries(files).map(([pid, count]) => [Number(pid), count]));
    this.#users = new Set(users);
  }

  end(pid: number): void {
    this.#files.delete(pid);
  }

  override list(): readonly string[] {
    return [...this.#files.keys()].map(String);
  }

  override *names(path: string): Generator<string, void> {
    const pid = Number(path.split('/')[0]);
    for (let fd = 0; fd < (this.#files.get(pid) ?? 0); fd += 1) {
      this.namesRead += 1;
      yield String(fd);
      if (!this.#files.has(pid)) throw Object.assign(new Error('gone'), { code: 'ENOENT' });
    }
  }

  override exists(path: string): boolean {
    return this.#files.has(Number(path.split('/')[0]));
  }

  override link(path: string): string | undefined {
    const [pid = '', , fd] = path.split('/');
    return this.#users.has(Number(pid)) && Number(fd) === (this.#files.get(Number(pid)) ?? 0) - 1 ? CARD : '/dev/null';
  }
}

describe('the search among processes with very many open files', () => {
  const MANY = 400_000;

  it('reads a bounded number of names, and finds the clients among the other processes', () => {
    const proc = new CrowdedProc({ 1: MANY, 2: MANY, 3: MANY, 4: MANY, 9: 20 }, [9]);
    const search = new ClientSearch(proc, PACE, STILL);
    expect(search.find(at(0))).toEqual([{ pid: 9, files: [{ fd: '19', node: 'renderD128' }] }]);
    expect(proc.namesRead).toBeLessThan(20_000);
    expect([search.hidden, search.isComplete]).toEqual([TOO_MANY, false]);
  });

  it('ends after a bounded time, and looks at the others in the next search', () => {
    const timer = (): number => proc.namesRead / 5;
    const proc = new CrowdedProc({ 1: MANY, 2: MANY, 3: MANY, 4: MANY, 9: 20 }, [9]);
    const search = new ClientSearch(proc, PACE, timer);
    expect(search.find(at(0))).toEqual([]);
    expect(proc.namesRead).toBeLessThan(600);
    expect(search.isComplete).toBe(false);
    expect([1, 2, 3].map((n) => search.find(at(n * 1_000)).map(({ pid }) => pid)).at(-1)).toEqual([9]);
  });

  it('goes on in the next searches until it knows all files', () => {
    const proc = new CrowdedProc({ 1: 40_000, 9: 20 }, [1]);
    const search = new ClientSearch(proc, PACE, STILL);
    const told = [0, 10_000, 20_000].map((nowMs) => [search.find(at(nowMs)).map(({ pid }) => pid), search.hidden]);
    expect(told).toEqual([
      [[], TOO_MANY],
      [[], TOO_MANY],
      [[1], undefined],
    ]);
    expect(search.isComplete).toBe(true);
  });

  it('forgets a process that ends while its listing goes on', () => {
    const proc = new CrowdedProc({ 1: MANY, 9: 20 }, [1]);
    const search = new ClientSearch(proc, PACE, STILL);
    search.find(at(0));
    proc.end(1);
    search.find(at(10_000));
    expect([search.hidden, search.isComplete]).toEqual([undefined, true]);
  });

  it('tells the supervisor where it is, and leaves out a process whose listing hung', () => {
    const steps: unknown[] = [];
    const guard = new WatchedGuard();
    const watched = new (class extends CrowdedProc {
      override link(path: string): string | undefined {
        steps.push(guard.current?.path, guard.current?.kind);
        return super.link(path);
      }
    })({ 7: 1 }, [], guard);
    new ClientSearch(watched, PACE, STILL).find(at(0));
    expect(steps).toEqual(['/nowhere/7/fd', 'call']);

    const proc = new CrowdedProc({ 7: 20, 9: 20, 10: 1_000 }, [7, 9, 10], new StepGuard(['/nowhere/7/fd']));
    const search = new ClientSearch(proc, PACE, STILL);
    const found = [0, 10_000].map((nowMs) => search.find(at(nowMs)).map(({ pid }) => pid));
    expect(found.at(-1)).toEqual([9, 10]);
    expect([search.hidden, search.isComplete]).toEqual([TOO_MANY, false]);
  });

  it('reads of a real process no more names than it needs', () => {
    const root = mkdtempSync(join(tmpdir(), 'device-agent-names-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    for (const name of ['a', 'b', 'c']) writeFileSync(join(root, name), '');
    const names = new Tree(root).names('.');
    expect(['a', 'b', 'c']).toContain(names.next().value);
    names.return();
    expect([...new Tree(root).names('.')].sort()).toEqual(['a', 'b', 'c']);
    expect(() => new Tree(root).names('absent').next()).toThrow(/ENOENT/);
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
