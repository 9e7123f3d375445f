import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { family as code } from '../../../src/probes/infiniband/index.ts';
import { pcieMetrics } from '../../../src/probes/kit/pcie/pcie.ts';
import { buildMachine, readMachine } from '../../support/machine.ts';
import { declaredFamily, lookAt } from './support.ts';

const ERRORS: Readonly<Record<string, string>> = {
  symbol_error: 'symbol',
  link_error_recovery: 'link_error_recovery',
  link_downed: 'link_downed',
  port_rcv_errors: 'receive',
  port_rcv_remote_physical_errors: 'receive_remote_physical',
  port_rcv_switch_relay_errors: 'receive_switch_relay',
  port_xmit_discards: 'transmit_discard',
  port_rcv_constraint_errors: 'receive_constraint',
  port_xmit_constraint_errors: 'transmit_constraint',
  local_link_integrity_errors: 'local_link_integrity',
  excessive_buffer_overrun_errors: 'excessive_buffer_overrun',
  VL15_dropped: 'vl15_dropped',
};

/** The readings of one port, written as a declaration. */
const PORT = `
family: ibport
summary: InfiniBand ports, declared
devices:
  - kind: pf
    find: { sysfs: class/infiniband/* }
    id: '{name}'
    facts: { firmware: { file: fw_ver }, model: { file: hca_type } }
pcie: true
readings:
  - { metric: device_link_up, file: 'ports/#/state', map: { '4: ACTIVE': 1, '1: DOWN': 0, '2: INIT': 0, '3: ARMED': 0 }, labels: { port: '{1}' } }
  - { metric: device_link_speed_bytes_per_second, file: 'ports/#/rate', field: 1, scale: 125000000, labels: { port: '{1}' } }
  - { metric: device_received_bytes_total, file: 'ports/#/counters/port_rcv_data', scale: 4, labels: { port: '{1}' } }
  - { metric: device_transmitted_bytes_total, file: 'ports/#/counters/port_xmit_data', scale: 4, labels: { port: '{1}' } }
  - { metric: device_received_packets_total, file: 'ports/#/counters/port_rcv_packets', labels: { port: '{1}' } }
  - { metric: device_transmitted_packets_total, file: 'ports/#/counters/port_xmit_packets', labels: { port: '{1}' } }
${Object.entries(ERRORS)
  .map(([file, kind]) => `  - { metric: device_errors_total, file: 'ports/#/counters/${file}', labels: { kind: ${kind}, port: '{1}' } }`)
  .join('\n')}
`;

const machine = buildMachine(readMachine(join('test/probes/infiniband/mlx5-every-counter', 'machine.yaml')));
afterAll(() => machine.remove());

it('reads the same values of a port as the family in code', async () => {
  const declared = await declaredFamily(PORT);
  const [ours, theirs] = await Promise.all([lookAt(declared, machine.root), lookAt(code, machine.root, machine.options)]);
  expect(ours.problems).toEqual([]);
  expect(ours.reports.map(({ device }) => device.id)).toEqual(theirs.reports.map(({ device }) => device.id));
  const kinds = new Set(Object.values(ERRORS));
  const names = new Set([...declared.metrics, ...pcieMetrics].map(({ name }) => name));
  const series = (collection: typeof ours): readonly string[] =>
    collection.reports
      .flatMap(({ device, read }) => [...(read?.readings ?? [])].map((reading) => ({ device: device.id, ...reading })))
      .filter(({ metric, labels }) => names.has(metric) && (metric !== 'device_errors_total' || kinds.has(labels?.kind ?? '')))
      .map(({ device, metric, labels = {}, value }) => JSON.stringify([device, metric, Object.entries(labels).sort(), String(value)]))
      .sort();
  expect(series(ours)).toEqual(series(theirs));
  expect(series(ours).length, 'series of the port').toBeGreaterThan(15);
  const facts = (collection: typeof ours) =>
    collection.reports.map(({ device: { pciAddress, numaNode, driver, firmware, model, pciVendor, pciDevice, pciPath } }) => ({
      pciAddress,
      numaNode,
      driver,
      firmware,
      model,
      pciVendor,
      pciDevice,
      pciPath,
    }));
  expect(facts(ours)).toEqual(facts(theirs));
});
