import type { ExpectedDevices } from '../../model/expected.ts';
import type { AgentMetricSpec } from '../../model/metric.ts';
import { labelText } from '../page/labels.ts';
import type { Page } from '../page/page.ts';

/** Metrics of the families for which the configuration expects a number of devices. */
export const expectedMetrics = {
  expected: metric('device_agent_expected_devices', 'Devices of the family that the configuration expects on the node.'),
  present: metric(
    'device_agent_present_devices',
    'Devices of an expected family that are present, without parts such as instances and virtual functions; absent until the family was read completely.',
  ),
} as const satisfies Readonly<Record<string, AgentMetricSpec>>;

export function addExpected(page: Page, expected: readonly ExpectedDevices[] = []): void {
  for (const { family, expected: wanted, present } of expected) {
    const label = labelText({ family });
    page.add(expectedMetrics.expected, label, wanted);
    if (present !== undefined) page.add(expectedMetrics.present, label, present);
  }
}

function metric(name: string, help: string): AgentMetricSpec {
  return { name, type: 'gauge', help, labels: ['family'], source: 'Agent.' };
}
