import { HEALTH_STATES } from '../../model/health.ts';
import type { AgentMetricSpec } from '../../model/metric.ts';
import type { FamilyState, Snapshot } from '../../model/snapshot.ts';
import { joinLabels, type LabelText, labelText } from '../page/labels.ts';
import type { Page } from '../page/page.ts';

/** Metrics of the probes, one set per family. */
export const probeMetrics = {
  success: metric(
    'gauge',
    'device_agent_probe_success',
    '1 if the latest run of the probe read at least one device or found that there is none, 0 if it could read nothing. The only series of a family of which the agent has not seen hardware.',
  ),
  lastSuccess: metric(
    'gauge',
    'device_agent_probe_last_success_timestamp_seconds',
    'When the probe last read its hardware, or it was last known that there is none.',
  ),
  duration: metric('gauge', 'device_agent_probe_duration_seconds', 'How long the latest run of the probe took.'),
  runDuration: metric(
    'histogram',
    'device_agent_probe_run_duration_seconds',
    'How long completed runs of the probe took; abandoned runs are counted elsewhere.',
  ),
  runs: metric('counter', 'device_agent_probe_runs_total', 'Runs of the probe.'),
  failures: metric('counter', 'device_agent_probe_failures_total', 'Runs of the probe that could read nothing.'),
  abandoned: metric(
    'counter',
    'device_agent_probe_abandoned_runs_total',
    'Runs of the probe that passed their deadline and were given up.',
  ),
  hung: metric('gauge', 'device_agent_probe_hung', '1 while a run of the probe is past its deadline and has not ended, else 0.'),
  problems: metric('gauge', 'device_agent_problems', 'Problems that keep the probe from reading, by code.', ['code']),
  disabledChecks: metric(
    'gauge',
    'device_agent_checks_disabled',
    '1 while the agent cannot make a check on devices of the family, because a part of the host is not given to it.',
    ['check', 'reason'],
  ),
  devices: metric('gauge', 'device_agent_devices', 'Devices by verdict; a missing device counts as missing only.', ['state']),
} as const satisfies Readonly<Record<string, AgentMetricSpec>>;

const MISSING = 'missing';
const STATE_LABELS = [...HEALTH_STATES, MISSING].map((state): readonly [string, LabelText] => [state, labelText({ state })]);

export function addProbes(page: Page, snapshot: Snapshot): void {
  const counts = countDevices(snapshot);
  for (const family of snapshot.families) {
    const label = labelText({ family: family.family });
    const own = counts.get(family.family);
    if (own === undefined && isAbsent(family)) {
      page.add(probeMetrics.success, label, 1);
      continue;
    }
    addRuns(page, family, label);
    for (const [code, count] of countCodes(family)) page.add(probeMetrics.problems, joinLabels(label, labelText({ code })), count);
    for (const { check, reason } of family.disabledChecks ?? [])
      page.add(probeMetrics.disabledChecks, joinLabels(label, labelText({ check, reason })), 1);
    for (const [state, stateLabel] of STATE_LABELS) page.add(probeMetrics.devices, joinLabels(label, stateLabel), own?.get(state) ?? 0);
  }
}

/** No run was ever needed, because the machine has no hardware of the family. After a run the series stay, so no counter disappears. */
const isAbsent = ({ succeeded, runs, problems, hung, disabledChecks = [] }: FamilyState): boolean =>
  succeeded === true && runs === 0 && problems.length === 0 && !hung && disabledChecks.length === 0;

function addRuns(page: Page, family: FamilyState, label: LabelText): void {
  if (family.succeeded !== undefined) page.add(probeMetrics.success, label, family.succeeded ? 1 : 0);
  if (family.lastSuccessMs !== undefined) page.add(probeMetrics.lastSuccess, label, family.lastSuccessMs / 1_000);
  if (family.durationMs !== undefined) page.add(probeMetrics.duration, label, family.durationMs / 1_000);
  if (family.durations !== undefined) page.addHistogram(probeMetrics.runDuration, label, family.durations);
  page.add(probeMetrics.runs, label, family.runs);
  page.add(probeMetrics.failures, label, family.failures);
  page.add(probeMetrics.abandoned, label, family.abandoned);
  page.add(probeMetrics.hung, label, family.hung ? 1 : 0);
}

function countCodes(family: FamilyState): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { code } of family.problems) counts.set(code, (counts.get(code) ?? 0) + 1);
  return counts;
}

/** Counts devices by family and state. */
function countDevices(snapshot: Snapshot): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const counts = new Map<string, Map<string, number>>();
  for (const { device, verdict, missingSinceMs } of snapshot.devices) {
    const { family } = device;
    const state = missingSinceMs === undefined ? verdict.state : MISSING;
    const own = counts.get(family) ?? new Map<string, number>();
    counts.set(family, own.set(state, (own.get(state) ?? 0) + 1));
  }
  return counts;
}

function metric(type: AgentMetricSpec['type'], name: string, help: string, labels: readonly string[] = []): AgentMetricSpec {
  return { name, type, help, labels: ['family', ...labels], source: 'Agent.' };
}
