import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** Gives a test or a wait a limit of its own. */
const OWN_LIMIT = /\btimeout: [\d_]+[,\s}]|^\s*\}, \d{1,3}(?:_\d{3})+\);$|\bvi\.wait(?:For|Until)\(/;
const REAL_TIME =
  /\bsetTimeout\(|\bsetInterval\(|import \{ setTimeout\b|\bperformance\.now\(\)|\bDate\.now\(\)|\bhrtime\b|\b(?:sleep|pause)\(-?(?:\d|[A-Z]|ms\b)/;
/** They measure the agent on a node of its own, where real time is what they ask for. */
const MEASURING = /^(?:gpu|node|kernel|kubelet\/real|release)\//;

/** How long the agent under test waits. */
const OPTIONS_OF_THE_AGENT: ReadonlySet<string> = new Set(['accounting/disk-agent.ts', 'agent/core-settings.ts']);

/** Files of tests that use real time, and why that decides nothing: what they wait for is an event. */
const WITH_REAL_TIME: Readonly<Record<string, string>> = {
  'accounting/day-of-pods.test.ts': 'a virtual clock that begins now, because the ledger deletes files by their age',
  'cli/publish/api-server.ts': 'says when a request came',
  'cli/publish/publish.test.ts': 'kills at a random time',
  'cli/usage.test.ts': 'a document of an hour ago',
  'e2e/crowded.test.ts': 'the kubelet asks from time to time, and clients come again and again',
  'e2e/health-sigkill.test.ts': 'kills at a random time, and a fault comes and goes',
  'e2e/kernel-lines.test.ts': 'an incident begins after its cause',
  'e2e/no-threads.test.ts': 'asks from time to time',
  'e2e/page-gap.test.ts': 'a pause that the page must show',
  'e2e/plugin-sockets.test.ts': 'a process that comes again and again',
  'e2e/release.test.ts': 'a time on the page is in the future',
  'e2e/restart-after-pause.test.ts': 'a pause that is longer than what was read is believed',
  'e2e/served-node.ts': 'says when a list came',
  'e2e/usage-truth.test.ts': 'pods live for a time that the page must tell',
  'e2e/waiting.test.ts': 'a time on the page is in the past',
  'e2e/xid.test.ts': 'a machine that booted an hour ago',
  'health/sigkill.test.ts': 'kills at a random time',
  'health/writing-agent.ts': 'writes what happened now',
  'host/kernel-log/relayed-log.test.ts': 'a machine that booted an hour ago',
  'host/process/command.test.ts': 'turns a virtual clock, and keeps a process',
  'incidents/kernel-log.test.ts': 'files of some minutes ago',
  'kubelet/claims/cdi.test.ts': 'a file that is written all the time',
  'oracle/node.ts': 'looks whether a command sleeps',
  'oracle/two-agents.ts': 'two agents in real time',
  'plugin/hostile-kubelets.test.ts': 'registrations that count as lasting',
  'plugin/offered.test.ts': 'asks from time to time',
  'plugin/plugin.test.ts': 'changes from time to time',
  'plugin/restarts.test.ts': 'pods come from time to time',
  'plugin/support.ts': 'the time between two changes that a test makes',
  'probes/declared/borealis.test.ts': 'a file that is written all the time',
  'probes/nvidia/nvml-release.test.ts': 'a virtual clock that begins now',
  'server/api.test.ts': 'a time on the page is in the past',
  'server/feed/health-watch.test.ts': 'a device that changes all the time',
  'server/prometheus.test.ts': 'asks until a server listens',
  'support/guard.mjs': 'looks whether processes have ended',
  'support/guard.test.ts': 'keeps a process',
  'support/own-run.test.ts': 'keeps a process',
  'support/kubelet/plugin-watcher.ts': 'deadlines of the kubelet',
  'support/pseudo-terminal.ts': 'the deadline that all have',
  'support/serve.ts': 'the deadline that all have',
  'support/until.ts': 'the deadline that all have',
};

const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter(
  (path) => /\.(?:ts|mjs)$/.test(path) && path !== 'waits.test.ts',
);
const placesOf = (path: string, pattern: RegExp): string[] =>
  readFileSync(`test/${path}`, 'utf8')
    .split('\n')
    .flatMap((line, at) => (pattern.test(line) ? [`test/${path}:${at + 1}: ${line.trim()}`] : []));

describe('a wait in a test', () => {
  it('has the deadline that all have: `until`, `eventually` and `expect.poll` know it', () => {
    const looked = files.filter((path) => !MEASURING.test(path) && !OPTIONS_OF_THE_AGENT.has(path));
    expect(looked.flatMap((path) => placesOf(path, OWN_LIMIT))).toEqual([]);
  });

  it('is for an event, and never for time', () => {
    const found = new Map(files.filter((path) => !MEASURING.test(path)).map((path) => [path, placesOf(path, REAL_TIME)]));
    const unknown = [...found].filter(([path, places]) => places.length > 0 && WITH_REAL_TIME[path] === undefined);
    expect(
      unknown.flatMap(([, places]) => places),
      'a file that the list does not name',
    ).toEqual([]);
    expect(
      Object.keys(WITH_REAL_TIME).filter((path) => (found.get(path) ?? []).length === 0),
      'a file of the list that does not',
    ).toEqual([]);
  });

  it('is no assertion on what passed meanwhile', () => {
    const assertion = /expect\([^;]*(?:performance\.now\(\)|Date\.now\(\)) ?-[^;]*\)\.toBe(?:Less|Greater)/;
    expect(files.filter((path) => !MEASURING.test(path)).flatMap((path) => placesOf(path, assertion))).toEqual([]);
  });
});
