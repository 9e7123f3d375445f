import { describe, expect, it } from 'vitest';
import { ProblemLog } from '../../src/agent/log-lines.ts';
import { createChangeLog } from '../../src/log/changes.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { family } from '../../src/probes/infiniband/index.ts';
import { allocation, familyState, podResources } from '../support/snapshots.ts';

const QUIET: Snapshot = {
  sequence: 1,
  takenAtMs: 0,
  devices: [],
  allocations: [],
  containerReadings: [],
  families: [familyState('infiniband')],
  podResources: podResources([]),
};

/** The lines of one snapshot after the other, without their time. */
function logOf(...snapshots: readonly Partial<Snapshot>[]): readonly string[] {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', format: 'text' }, { write: (line) => lines.push(line.trimEnd().replace(/^\S+ /, '')) });
  let nowMs = 0;
  const log = new ProblemLog(
    createChangeLog(logger, () => nowMs),
    [family],
  );
  for (const part of snapshots) {
    log.update({ ...QUIET, ...part });
    nowMs += 32_000;
  }
  return lines;
}

describe('the log of problems', () => {
  it('tells what a probe could not read in the past tense once that is over, without a remedy', () => {
    const problem = { code: 'net-namespace', device: 'mlx5_0', message: 'counters are hidden' };
    const lines = logOf({ families: [{ ...familyState('infiniband'), problems: [problem] }] }, {});
    expect(lines).toEqual([
      expect.stringMatching(
        /^WARN {2}a probe cannot read everything family=infiniband code=net-namespace device=mlx5_0 detail="counters are hidden"/,
      ),
      'INFO  a probe could not read everything; this problem ended family=infiniband code=net-namespace device=mlx5_0 was="counters are hidden" sightings=1 durationSeconds=32',
    ]);
  });

  it('never says that the kubelet answers when only the reason of the problem changed', () => {
    const missing = podResources([], { problem: { reason: 'socket-missing', message: 'no socket' } });
    const refused = podResources([], { problem: { reason: 'refused', message: 'connect ECONNREFUSED' } });
    expect(logOf({ podResources: missing }, { podResources: refused }, {})).toEqual([
      'WARN  the kubelet cannot be queried reason=socket-missing detail="no socket"',
      'INFO  the kubelet could not be queried; this problem ended reason=socket-missing was="no socket" sightings=1 durationSeconds=32',
      'WARN  the kubelet cannot be queried reason=refused detail="connect ECONNREFUSED"',
      'INFO  the kubelet could not be queried; this problem ended reason=refused was="connect ECONNREFUSED" sightings=1 durationSeconds=32',
    ]);
  });

  it('tells of an id that two families claimed', () => {
    const claimed = { allocation: allocation({ deviceId: '7' }), devices: [], unresolved: 'ambiguous', held: false } as const;
    const [begun, ended, ...more] = logOf({ allocations: [claimed] }, {});
    expect(begun).toContain(
      'WARN  two device families claim the same device id; the allocation is assigned to neither resource=example.com/toy',
    );
    expect(ended).toContain(
      'INFO  two device families claimed the same device id of an allocation; this problem ended resource=example.com/toy',
    );
    expect(more).toEqual([]);
  });
});
