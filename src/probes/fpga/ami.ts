import type { Tree } from '../../host/fs/tree.ts';
import { parseInteger, type Sensor } from '../../host/hwmon.ts';
import type { DeviceReport } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Finding } from '../../model/health.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { pciIdentity, readPciFacts } from './board.ts';
import { addInfo } from './manager.ts';
import { metrics } from './metrics.ts';
import { addPcie } from './pcie-facts.ts';
import { ReportBuilder } from './report-builder.ts';
import { addSensors, isPresent, judgeCritical, MAIN_KINDS, nameSensors, RAIL_KINDS, readMonitor } from './sensors.ts';
import { atMostEvery, filesOf, type Survey } from './survey.ts';

type NotReadyReason = 'Initializing' | 'MissingInformation' | 'ControllerAbsent' | 'InitializationFailed' | 'ShutDown' | 'Incompatible';

/** Values of `dev_state` except `READY`. Source: Xilinx/AVED, AMI driver. The driver calls MISSING_INFO usable. */
const STATES: Readonly<Record<string, Pick<Finding, 'severity'> & { readonly reason: NotReadyReason }>> = {
  INIT: { reason: 'Initializing' },
  MISSING_INFO: { reason: 'MissingInformation', severity: 'degraded' },
  NO_AMC: { reason: 'ControllerAbsent' },
  INIT_ERROR: { reason: 'InitializationFailed' },
  SHUTDOWN: { reason: 'ShutDown' },
  COMPAT: { reason: 'Incompatible' },
};

/** Reads the boards of the AMI driver (Alveo V80): AMD functions with a file `dev_state`. */
export function readAmiBoards(survey: Survey, addresses: readonly string[]): readonly DeviceReport[] {
  return addresses.map((address) => readAmi(survey, address));
}

function readAmi(survey: Survey, address: string): DeviceReport {
  const { sys } = survey.host;
  const builder = new ReportBuilder();
  const files = filesOf(survey, `bus/pci/devices/${address}`, address);
  const isReadable = addPcie(builder, survey, address) === 'readable';
  const text = (file: string): string | undefined => (isReadable ? files.text(file) : undefined);
  const [model, serial, firmware, shell] = [text('dev_name'), text('board_serial'), text('amc_version'), text('logic_uuid')];
  if (isReadable) {
    addAmiState(builder, files.text('dev_state'));
    addLink(builder, files);
    addAmiSensors(builder, survey, address);
    addInfo(builder, { stack: 'ami', bmc_version: firmware, shell });
  }
  const node = nodeOf(sys, address);
  return builder.report(
    defined({
      family: 'fpga',
      id: address,
      kind: 'fpga',
      aliases: [],
      ...pciIdentity(readPciFacts(sys, address)),
      model,
      serial,
      firmware,
      stack: 'ami',
      characterDevices: node === undefined ? [] : [node],
    }),
  );
}

/**
 * Returns the node of a board. The driver lists its boards as `bus:device.function node hwmon`, without PCI domain. When two boards
 * differ only in their domain, the node is unknown.
 */
function nodeOf(sys: Tree, address: string): string | undefined {
  const shortAddress = address.slice(address.indexOf(':') + 1);
  const lines = (sys.text('bus/pci/drivers/ami/devices') ?? '').split('\n').map((line) => line.trim().split(/\s+/));
  const [own, other] = lines.filter(([name]) => name === shortAddress);
  const number = other === undefined ? own?.[1] : undefined;
  return number !== undefined && /^\d+$/.test(number) ? `/dev/ami${number}` : undefined;
}

export function addAmiState(builder: ReportBuilder, state: string | undefined): void {
  if (state === undefined) return;
  const { reason, ...more } = STATES[state] ?? {};
  const isReady = state === 'READY';
  if (!isReady && reason === undefined) return;
  builder.add(metrics.ready, isReady);
  builder.find('NotReady', !isReady, reason ?? 'Ready', `dev_state is ${state}`, isReady ? {} : more);
}

/** Adds link values from the driver's files where the files of the PCI core contain "Unknown". */
function addLink(builder: ReportBuilder, files: DeviceFiles): void {
  for (const [metric, file] of [
    [metrics.pcieWidth, 'link_width_current'],
    [metrics.pcieWidthMax, 'link_width_max'],
    [metrics.pcieGeneration, 'link_speed_current'],
    [metrics.pcieGenerationMax, 'link_speed_max'],
  ] as const) {
    if (!builder.readings.some((reading) => reading.metric === metric.name))
      builder.add(metric, files.value(file, parseInteger) || undefined);
  }
}

function addAmiSensors(builder: ReportBuilder, survey: Survey, address: string): void {
  const { options } = survey;
  const kinds = options['rail-sensors'] ? [...MAIN_KINDS, ...RAIL_KINDS] : MAIN_KINDS;
  const sensors = atMostEvery(survey, `${address}/sensors`, options['sensor-interval'], (each) => {
    const monitors = each.monitors.filter((monitor) => monitor.address === address);
    const read = (path: string): readonly Sensor[] => readMonitor(each, address, path, { kinds, attributes: ['crit'] });
    return nameSensors(monitors.flatMap(({ path }) => read(path).map((sensor) => withPresence(each.host.sys, path, sensor))));
  });
  addSensors(builder, sensors);
  for (const { kind, name, value, attributes } of sensors) {
    const critical = attributes.crit;
    if (kind !== 'temp' || value === undefined || critical === undefined || critical <= 0) continue;
    builder.add(metrics.temperatureLimit, critical, { sensor: name, limit: 'crit' });
    judgeCritical(builder, survey, address, address, { name, value, critical });
  }
}

/** Removes the value of an absent sensor. Such a sensor reads as 0, and its status file says that it is absent. */
function withPresence(sys: Tree, path: string, sensor: Sensor): Sensor {
  if (isPresent(sys.text(`${path}/${sensor.channel}_status`))) return sensor;
  const { value: _, ...rest } = sensor;
  return rest;
}
