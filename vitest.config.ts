import { defineConfig } from 'vitest/config';
import { RELEASES } from './test/kubelet/real/support/build.ts';
import { mutation } from './test/oracle/mutation.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { filesOf } from './test/support/projects.ts';
import { ShortReport } from './test/support/report.ts';

/** Workers of tests that wait for real programs: more than a machine has processors. */
const WAITING = 5;

/** Bundles the program, and ends what tests started. */
const PROGRAM_SETUP = 'test/support/program.ts';

export default defineConfig({
  plugins: [mutation(process.env.ORACLE_MUTANT)],
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A busy machine delays what a test waits for. The default of one second is too short for that.
    expect: { poll: { timeout: 40_000, interval: 20 } },
    pool: 'forks',
    reporters: [new ShortReport()],
    maxWorkers: WAITING,
    sequence: { sequencer: LongestFirst },
    // A machine that others use too delays the processes of a test. The report names each test that needed another run.
    retry: process.env.CI === undefined ? 0 : 2,
    projects: [
      { extends: true, test: { name: 'floors', include: ['test/floors.test.ts'] } },
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
          testTimeout: 60_000,
        },
      })),
      {
        extends: true,
        test: { name: 'node', include: ['test/node/**/*.test.ts'], fileParallelism: false, testTimeout: 120_000, hookTimeout: 120_000 },
      },
      { extends: true, test: { name: 'release', include: ['test/release/whole/**/*.test.ts'] } },
      {
        extends: true,
        test: {
          name: 'kernel',
          include: ['test/kernel/**/*.test.ts'],
          // Emulated machines, each of which takes all it gets.
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
