import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { familyMetrics } from '../kit/metrics.ts';
import { pcieErrorMetric, pcieLinkMetrics } from '../kit/pcie/pcie.ts';

const { gauge, counter } = familyMetrics('fpga');

const PCI = '/sys/bus/pci/devices/<address>';
const FME = '/sys/class/fpga_region/<region>/dfl-fme.<n>';
const PORT = '/sys/class/fpga_region/<region>/dfl-port.<n>';
const HWMON = '/sys/class/hwmon/<hwmon> below the board';
const XRT = `${PCI} of the user function`;

export const metrics = {
  temperature: measured(shared.temperature, `${HWMON}: temp<n>_input; sensor is the text of temp<n>_label`),
  temperatureLimit: measured(
    shared.temperatureLimit,
    `${HWMON}: temp<n>_max, temp<n>_crit, temp<n>_emergency of DFL boards; temp<n>_max, temp<n>_lcrit, temp<n>_crit of ami, which names its upper critical limit lcrit, and crit the fatal one. XRT's temp<n>_highest is no limit`,
  ),
  power: measured(shared.power, `${HWMON}: power<n>_input`),
  voltage: measured(shared.voltage, `${HWMON}: in<n>_input of the driver ami`),
  powerLimit: measured(shared.powerLimit, `${HWMON}: power1_max, power1_crit, power1_xeon_limit, power1_fpga_limit of dfl_fme_power`),
  current: gauge('current_amperes', 'Current at one sensor.', ['sensor'], `${HWMON}: curr<n>_input of the driver ami`),
  fanSpeed: measured(shared.fanSpeed, `${HWMON}: fan<n>_input`),
  throttled: measured(
    shared.throttled,
    `${PORT}/power_state for ap1, ap2, ap6; temp1_max_alarm, temp1_crit_alarm, power1_max_alarm, power1_crit_alarm of the FME's hwmon`,
  ),
  clock: measured(shared.clock, `${XRT}: icap.u.<n>/clock_freqs, in MHz; clock is the line number, from 0`),
  memoryUsed: measured(shared.memoryUsed, `${XRT}: memstat_raw, sum over the memory banks`),
  errors: measured(shared.errors, `${PCI}: mig.<n>/ecc_ce_cnt and ecc_ue_cnt where ecc_enabled is 1`, ['kind', 'bank']),
  pcieWidth: pcieLinkMetrics.width,
  pcieWidthMax: pcieLinkMetrics.widthMax,
  pcieGeneration: pcieLinkMetrics.generation,
  pcieGenerationMax: pcieLinkMetrics.generationMax,
  pcieErrors: pcieErrorMetric,

  info: gauge(
    'info',
    'What the board is loaded with; a label is empty where the driver does not report it.',
    ['stack', 'compat_id', 'accelerator_id', 'bitstream_id', 'bmc_version', 'shell'],
    `${FME}/{bitstream_id,dfl-fme-region.*}, ${PORT}/afu_id, bmcfw_version of the board controller; xclbinuuid and rom.u.<n>/VBNV of XRT; logic_uuid and amc_version of ami`,
  ),
  managerState: gauge(
    'manager_state',
    'The state that the FPGA manager is in; always 1. A DFL board that was never programmed since boot says unknown.',
    ['state'],
    '/sys/class/fpga_manager/<manager>/state',
  ),
  error: gauge(
    'error',
    '1 for each bit that is set in an error register; no series for the others. Bits stay set until an operator clears them.',
    ['register', 'bit'],
    `${FME}/errors/{fme_errors,pcie0_errors,pcie1_errors,nonfatal_errors,catfatal_errors,inject_errors} and ${PORT}/errors/errors`,
    { wiped: true },
  ),
  powerState: gauge('power_state', 'The power state that a port is in; always 1.', ['state'], `${PORT}/power_state`),
  reconfigurations: counter(
    'reconfigurations_total',
    'Times that another accelerator was loaded while the agent watched.',
    [],
    `changes of ${PORT}/afu_id and of xclbinuuid`,
  ),
  executions: counter('executions_total', 'Kernel executions since the driver was loaded.', [], `${XRT}: kdsstat, total execs`),
  clients: gauge('clients', 'Open contexts of programs on the board.', [], `${XRT}: kdsstat, contexts`),
} as const satisfies Readonly<Record<string, MetricSpec>>;
