import type { IncidentCount } from '../../model/agent-stats.ts';
import type { MetricSpec } from '../../model/metric.ts';
import { labelText } from '../page/labels.ts';
import type { Page } from '../page/page.ts';

export const incidentMetricSpecs = {
  total: {
    name: 'device_incidents_total',
    type: 'counter',
    help: 'How often the device got into the state, by the condition that led the verdict. It belongs to the hardware, and goes on over restarts and reboots. A series begins with its first incident, at 1.',
    labels: ['condition', 'state'],
    source: 'Agent. Changes of one device within ten seconds are one incident: docs/incidents.md.',
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;

export function addIncidents(page: Page, incidents: readonly IncidentCount[] | undefined): void {
  for (const { device, condition, state, count } of incidents ?? []) {
    page.add(incidentMetricSpecs.total, labelText({ device, condition, state }), count);
  }
}
