import { defineConfig } from 'vitest/config';
import { RELEASES } from './test/kubelet/real/support/build.ts';
import { mutation } from './test/oracle/mutation.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { ownRun } from './test/support/own-run.ts';
import { filesOf } from './test/support/projects.ts';
import { ShortReport } from './test/support/report.ts';
import { DEADLINE_MS } from './test/support/until.ts';

/** The most that a test takes with all its waits: one on a cluster has many. */
const LIMIT_MS = 6 * DEADLINE_MS;

/** Workers of tests that wait for real programs: more than a machine has processors. */
const WAITING = 5;

/** Bundles the program. */
const PROGRAM_SETUP = 'test/support/program.ts';

ownRun();

export default defineConfig({
  plugins: [mutation(process.env.ORACLE_MUTANT)],
  test: {
    // Above the deadline of each wait, which says what did not come.
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    expect: { poll: { timeout: DEADLINE_MS, interval: 20 } },
    pool: 'forks',
    reporters: [new ShortReport()],
    maxWorkers: WAITING,
    sequence: { sequencer: LongestFirst },
    // A machine that others use too delays the processes of a test. The report names each test that needed another run.
    retry: process.env.CI === undefined ? 0 : 2,
    projects: [
      { extends: true, test: { name: 'floors', include: filesOf('floors') } },
      // What a file says decides which of these three runs it: test/support/projects.ts. The pure ones wait for nothing, and come last.
      { extends: true, test: { name: 'pure', include: filesOf('pure'), isolate: false, maxWorkers: 2, sequence: { groupOrder: 1 } } },
      { extends: true, test: { name: 'tests', include: filesOf('tests'), globalSetup: PROGRAM_SETUP } },
      { extends: true, test: { name: 'programs', include: filesOf('programs'), globalSetup: PROGRAM_SETUP } },
      ...RELEASES.map((release, at) => ({
        extends: true as const,
        test: {
          name: `kubelet-${release}`,
          include: ['test/kubelet/real/**/*.test.ts'],
          globalSetup: ['test/kubelet/real/support/global-setup.ts'],
          provide: { kubeletRelease: release },
          fileParallelism: false,
          sequence: { groupOrder: at },
        },
      })),
      {
        extends: true,
        test: { name: 'node', include: ['test/node/**/*.test.ts'], fileParallelism: false },
      },
      { extends: true, test: { name: 'release', include: ['test/release/whole/**/*.test.ts'] } },
      {
        extends: true,
        test: {
          name: 'kernel',
          include: ['test/kernel/**/*.test.ts'],
          // Emulated machines, each of which takes all it gets.
          fileParallelism: false,
        },
      },
    ],
  },
});
