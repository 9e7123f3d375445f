import { by, DEVICE } from '../../deploy/rules/promql.ts';
import type { Board } from './board.ts';
import {
  ASKED,
  CLUSTER,
  HOLDER,
  inState,
  NODE,
  orZero,
  query,
  SILENT_AGENTS,
  STATE_TEXTS,
  series,
  stateNumber,
  withHolder,
  zeros,
} from './queries.ts';

const CONDITION = 'condition, part, reason, severity, remedy';
const sick = by(DEVICE, `${series('device_health', 'state=~"unhealthy|degraded|unknown"')} == 1`);

export const health: Board = {
  name: 'health',
  title: 'Health',
  description: 'Which devices are faulty, why, since when, and which pods are affected.',
  variables: [CLUSTER, NODE],
  lines: [
    {
      height: 4,
      panels: [
        SILENT_AGENTS,
        {
          ...{ kind: 'stat', title: 'Unhealthy', unit: 'none', width: 4, badFrom: 1 },
          description: 'Devices that are out of service.',
          queries: [query(inState('unhealthy'))],
        },
        {
          ...{ kind: 'stat', title: 'Degraded', unit: 'none', width: 4, warnFrom: 1 },
          description: 'Devices that have a fault and stay in service.',
          queries: [query(inState('degraded'))],
        },
        {
          ...{ kind: 'stat', title: 'Unknown', unit: 'none', width: 4, warnFrom: 1 },
          description: 'Devices whose health cannot be judged now.',
          queries: [query(inState('unknown'))],
        },
        {
          ...{ kind: 'stat', title: 'Missing', unit: 'none', width: 4, badFrom: 1 },
          description: 'Devices that were there and have disappeared.',
          queries: [query(zeros(by(DEVICE, series('device_present'))))],
        },
        {
          ...{ kind: 'stat', title: 'Ids without a device', unit: 'none', width: 4, warnFrom: 1 },
          description: 'Ids that containers hold and for which the agent knows no device.',
          queries: [query(orZero(`count(${series('container_device_unresolved')})`, ASKED))],
        },
      ],
    },
    {
      height: 10,
      panels: [
        {
          ...{ kind: 'table', title: 'Faulty devices', unit: 'dateTimeFromNow', width: 14, value: 'since', opens: 'device' },
          description: 'Each condition of each device with its remedy; since is the time of the present verdict.',
          columns: ['severity', 'node', 'device', 'condition', 'part', 'reason', 'remedy', 'cluster'],
          queries: [
            query(
              `${by(`${DEVICE}, ${CONDITION}`, series('device_health_condition'))} * on (${DEVICE}) group_left () ${by(DEVICE, series('device_health_since_timestamp_seconds'))} * 1000`,
            ),
          ],
        },
        {
          ...{ kind: 'table', title: 'Whose pods', unit: 'none', width: 10, opens: 'workload' },
          description: 'The containers that hold a device that is not healthy.',
          columns: ['holder_namespace', 'holder_pod', 'holder_container', 'node', 'device', 'cluster'],
          queries: [
            query(
              `${by(`${DEVICE}, ${HOLDER}`, withHolder(series('container_device_allocation', 'device!=""')))} and on (${DEVICE}) ${sick}`,
            ),
          ],
        },
      ],
    },
    {
      height: 9,
      panels: [
        {
          ...{ kind: 'timeline', title: 'Faulty devices over time', unit: 'none', width: 24, texts: STATE_TEXTS, opens: 'device' },
          description: 'Devices that were not healthy at the time, with their state.',
          queries: [query(`${stateNumber()} > 0`, '{{node}} {{device}}')],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Changes of verdicts per hour', unit: 'none', width: 8 },
          description: 'How often a device took a state within the last hour.',
          queries: [
            query(`sum by (state) (${by(`${DEVICE}, state`, `increase(${series('device_health_transitions_total')}[1h])`)})`, '{{state}}'),
          ],
        },
        {
          ...{ kind: 'series', title: 'Conditions', unit: 'none', width: 8 },
          description: 'How many conditions of each type hold.',
          queries: [query(`count by (condition) (${by(`${DEVICE}, ${CONDITION}`, series('device_health_condition'))})`, '{{condition}}')],
        },
        {
          ...{ kind: 'table', title: 'Problems of probes', unit: 'none', width: 8, value: 'count' },
          description: 'What keeps agents from reading devices. docs/problems.md has the remedy for each code.',
          columns: ['node', 'family', 'code'],
          queries: [query(`sum by (node, family, code) (${series('device_agent_problems')})`)],
        },
      ],
    },
    {
      height: 7,
      panels: [
        {
          ...{ kind: 'table', title: 'Conditions that do not count', unit: 'none', width: 12, opens: 'device' },
          description: 'Conditions that hold and that the configuration ignores on the device.',
          columns: ['node', 'device', 'condition', 'part', 'reason', 'severity', 'cluster'],
          queries: [query(by(`${DEVICE}, condition, part, reason, severity`, series('device_health_condition_ignored')))],
        },
        {
          ...{ kind: 'table', title: 'Ids without a device', unit: 'none', width: 12, opens: 'workload' },
          description: 'Which containers hold ids for which the agent knows no device, and why.',
          columns: ['holder_namespace', 'holder_pod', 'holder_container', 'resource', 'device_id', 'reason', 'node', 'cluster'],
          queries: [query(by(`cluster, node, resource, device_id, reason, ${HOLDER}`, withHolder(series('container_device_unresolved'))))],
        },
      ],
    },
  ],
};
