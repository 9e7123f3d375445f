import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';

const built = (name: string): string => JSON.stringify(pathToFileURL(`dist/cli/${name}`).href);

/** Runs a program in a process of its own, without the variables that say how memory is to be taken; gives what it prints. */
function run(program: string): string {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('MALLOC_') && name !== 'GLIBC_TUNABLES');
  return execFileSync(process.execPath, ['--input-type=module', '-e', program], { env: Object.fromEntries(own), encoding: 'utf8' });
}

/** Starts threads one after the other, and goes on when all run. */
const THREADS = `
  import { once } from 'node:events';
  import { Worker } from 'node:worker_threads';
  const startThreads = async (count) => {
    for (let n = 0; n < count; n += 1) {
      const worker = new Worker('require("node:worker_threads").parentPort.on("message", () => {}); Buffer.alloc(100_000)', { eval: true, execArgv: [] });
      await once(worker, 'online');
    }
  };`;

describe('the heap of the main thread', () => {
  /** MiB of the young generation after threads were made, and much that lives on. */
  const youngAfterThreads = (bound: string): number =>
    Number(
      run(`${THREADS}
        import { getHeapSpaceStatistics } from 'node:v8';
        import { boundHeaps } from ${built('heap.js')};
        ${bound}
        await startThreads(3);
        const kept = [];
        for (let round = 0; round < 40; round += 1) {
          for (let n = 0; n < 20_000; n += 1) kept[n % 10_000] = { round, n };
          await new Promise(setImmediate);
        }
        const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
        console.log(young.space_size / 2 ** 20);
        process.exit();`),
    );

  it('keeps its young generation small when threads have made heaps of their own', () => {
    const bounded = youngAfterThreads('boundHeaps();');
    expect(bounded).toBeLessThanOrEqual(4);
    expect(youngAfterThreads('')).toBeGreaterThan(bounded);
  });
});

describe('the heap of a thread', () => {
  /** Full collections while a thread replaces all that it holds, over and over, with collections of young objects in the midst of it. */
  const fullCollections = (bound: string): number =>
    Number(
      run(`
        import { once } from 'node:events';
        import { setFlagsFromString } from 'node:v8';
        import { Worker } from 'node:worker_threads';
        import { boundHeaps } from ${built('heap.js')};
        ${bound}
        const program = \`
          const { PerformanceObserver, constants } = require('node:perf_hooks');
          const { parentPort } = require('node:worker_threads');
          let full = 0;
          const isFull = ({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR;
          new PerformanceObserver((seen) => { full += seen.getEntries().filter(isFull).length; }).observe({ entryTypes: ['gc'] });
          let held = [];
          const look = (n, round) => {
            const values = [];
            for (let place = 0; place < 30; place += 1) values.push(round * place + 0.5);
            return { n, sample: { values, parts: [values] } };
          };
          const replaceAll = (round) => {
            const next = [];
            for (let n = 0; n < 400; n += 1) next[n] = look(n, round);
            held = next;
          };
          const main = async () => {
            for (let round = 0; round < 1200; round += 1) {
              replaceAll(round);
              if (round % 20 === 0) await new Promise(setImmediate);
            }
            await new Promise((resolve) => setTimeout(resolve, 50));
            parentPort.postMessage(full);
          };
          main();
        \`;
        const [full] = await once(new Worker(program, { eval: true, execArgv: [] }), 'message');
        console.log(full);
        process.exit();`),
    );

  it('fills its old space with nothing that the next round replaces', () => {
    expect(fullCollections('boundHeaps();')).toBeLessThan(3);
    // Later versions of V8 place what outlives a collection with more care, this one does so in one run of ten.
    const unbounded = (): number => fullCollections(`setFlagsFromString('--max-semi-space-size=1');`);
    if (process.versions.node.startsWith('20.')) expect([unbounded, unbounded, unbounded, unbounded].some((run) => run() > 4)).toBe(true);
  });
});

describe('the allocator', () => {
  /** How many arenas `malloc` made while threads started. */
  const arenasOfThreads = (bound: string): number => {
    const folder = mkdtempSync(join(tmpdir(), 'device-agent-memory-'));
    try {
      return Number(
        run(`${THREADS}
          import { readFileSync } from 'node:fs';
          import koffi from ${JSON.stringify(pathToFileURL('node_modules/koffi/index.js').href)};
          import { boundAllocator } from ${built('allocator.js')};
          const c = koffi.load(null);
          const open = c.func('void *fopen(const char *path, const char *mode)');
          const tell = c.func('int malloc_info(int options, void *stream)');
          const close = c.func('int fclose(void *stream)');
          const arenas = () => {
            const stream = open(${JSON.stringify(join(folder, 'info'))}, 'w');
            tell(0, stream);
            close(stream);
            return readFileSync(${JSON.stringify(join(folder, 'info'))}, 'utf8').match(/<heap nr=/g).length;
          };
          ${bound}
          const before = arenas();
          await startThreads(4);
          console.log(arenas() - before);
          process.exit();`),
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };

  it('has threads share an arena, unless told otherwise from outside', () => {
    expect(arenasOfThreads('boundAllocator({});')).toBe(0);
    expect(arenasOfThreads(`boundAllocator({ MALLOC_ARENA_MAX: '8', MALLOC_TRIM_THRESHOLD_: '1' });`)).toBeGreaterThan(0);
  });
});
