import { by, DEVICE } from '../../deploy/rules/promql.ts';
import type { Board } from './board.ts';
import { CLUSTER, NODE, query, rate, STATE_TEXTS, series, stateNumber } from './queries.ts';

const LEGEND = '{{node}} {{device}}';
/** Shared metrics also measure other families; the identity limits them to this one. */
const here = (expr: string): string => `${expr} and on (${DEVICE}) ${by(DEVICE, series('device_info', 'family="fpga"'))}`;

export const fpga: Board = {
  name: 'fpga',
  title: 'FPGA',
  description: 'FPGA boards: what is loaded, sensors, throttling, errors.',
  variables: [CLUSTER, NODE],
  lines: [
    {
      height: 4,
      panels: [
        {
          ...{ kind: 'stat', title: 'Boards and ports', unit: 'none', width: 8 },
          description: 'Devices of the family FPGA.',
          queries: [query(`count(${by(DEVICE, series('device_info', 'family="fpga"'))})`)],
        },
        {
          ...{ kind: 'stat', title: 'Out of service', unit: 'none', width: 8, badFrom: 1 },
          description: 'FPGA devices whose verdict is unhealthy.',
          queries: [query(`sum(${here(by(DEVICE, series('device_health', 'state="unhealthy"')))})`)],
        },
        {
          ...{ kind: 'stat', title: 'Power', unit: 'watt', width: 8 },
          description: 'Power of all boards.',
          queries: [query(`sum(${here(by(DEVICE, series('device_power_watts')))})`)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'timeline', title: 'Health', unit: 'none', width: 10, texts: STATE_TEXTS, opens: 'device' },
          description: 'The verdict on each device over time.',
          queries: [query(here(stateNumber()), LEGEND)],
        },
        {
          ...{ kind: 'table', title: 'What is loaded', unit: 'none', width: 14, opens: 'device' },
          description: 'Stack, bitstream and accelerator of each board. A column is empty where the board does not report the value.',
          columns: ['node', 'device', 'stack', 'bitstream_id', 'accelerator_id', 'compat_id', 'shell', 'bmc_version', 'cluster'],
          queries: [query(by(`${DEVICE}, stack, bitstream_id, accelerator_id, compat_id, shell, bmc_version`, series('device_fpga_info')))],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Temperature', unit: 'celsius', width: 8, opens: 'device' },
          description: 'Temperature at each sensor.',
          queries: [query(here(by(`${DEVICE}, sensor`, series('device_temperature_celsius'))), `${LEGEND} {{sensor}}`)],
        },
        {
          ...{ kind: 'series', title: 'Power by sensor', unit: 'watt', width: 8, opens: 'device' },
          description: 'Power as each sensor measures it.',
          queries: [query(here(by(`${DEVICE}, sensor`, series('device_power_watts'))), `${LEGEND} {{sensor}}`)],
        },
        {
          ...{ kind: 'series', title: 'Throttled', unit: 'none', width: 8, opens: 'device' },
          description: '1 while the device runs slower for a reason.',
          queries: [query(here(by(`${DEVICE}, reason`, series('device_throttled'))), `${LEGEND} {{reason}}`)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'table', title: 'Manager and power states', unit: 'none', width: 8, opens: 'device' },
          description: 'The state that each FPGA manager is in, and the power state of each port.',
          columns: ['node', 'device', 'state', 'cluster'],
          queries: [
            query(
              `${by(`${DEVICE}, state`, series('device_fpga_manager_state'))} or ${by(`${DEVICE}, state`, series('device_fpga_power_state'))}`,
            ),
          ],
        },
        {
          ...{ kind: 'series', title: 'Error bits', unit: 'none', width: 8, opens: 'device' },
          description: 'Bits that are set in the error registers of a board, by register.',
          queries: [query(`sum by (${DEVICE}, register) (${series('device_fpga_error')})`, `${LEGEND} {{register}}`)],
        },
        {
          ...{ kind: 'series', title: 'PCIe errors', unit: 'ops', width: 8, opens: 'device' },
          description: 'Errors of the PCIe link by severity, per second.',
          queries: [query(here(`sum by (${DEVICE}, severity) (${rate('device_pcie_errors_total')})`), `${LEGEND} {{severity}}`)],
        },
      ],
    },
  ],
};
