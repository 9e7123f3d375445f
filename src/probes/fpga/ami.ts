import { parseInteger, readHwmon } from '../../host/hwmon.ts';
import type { DeviceReport } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import { pciIdentity, readPciFacts } from './board.ts';
import { BoardFiles } from './board-files.ts';
import { Facts } from './facts.ts';
import { addInfo } from './manager.ts';
import { metrics } from './metrics.ts';
import { addPcie } from './pcie-facts.ts';
import { addSensors, judgeCritical, MAIN_KINDS, nameSensors, RAIL_KINDS } from './sensors.ts';
import type { Survey } from './survey.ts';

type NotReadyReason = 'Initializing' | 'MissingInformation' | 'ControllerAbsent' | 'InitializationFailed' | 'ShutDown' | 'Incompatible';

/** Values of `dev_state` but `READY`. Source: Xilinx/AVED, AMI driver; it calls MISSING_INFO usable. */
const STATES: Readonly<Record<string, Pick<Finding, 'severity'> & { readonly reason: NotReadyReason }>> = {
  INIT: { reason: 'Initializing' },
  MISSING_INFO: { reason: 'MissingInformation', severity: 'degraded' },
  NO_AMC: { reason: 'ControllerAbsent' },
  INIT_ERROR: { reason: 'InitializationFailed' },
  SHUTDOWN: { reason: 'ShutDown' },
  COMPAT: { reason: 'Incompatible' },
};

/** Boards of the AMI driver (Alveo V80): functions of AMD with a file `dev_state`. */
export function readAmiBoards(survey: Survey, addresses: readonly string[]): readonly DeviceReport[] {
  return addresses.map((address) => readAmi(survey, address));
}

function readAmi(survey: Survey, address: string): DeviceReport {
  const { sys } = survey.host;
  const facts = new Facts();
  const files = new BoardFiles(sys, `bus/pci/devices/${address}`, address, survey.problems);
  const isReadable = addPcie(facts, survey, address) === 'readable';
  const text = (file: string): string | undefined => (isReadable ? files.text(file) : undefined);
  const [model, serial, firmware, shell] = [text('dev_name'), text('board_serial'), text('amc_version'), text('logic_uuid')];
  if (isReadable) {
    addAmiState(facts, files.text('dev_state'));
    addLink(facts, files);
    addAmiSensors(facts, survey, address);
    addInfo(facts, { stack: 'ami', bmc_version: firmware, shell });
  }
  const { attributes, ...identity } = pciIdentity(readPciFacts(sys, address));
  return facts.report({
    family: 'fpga',
    id: address,
    kind: 'fpga',
    aliases: [],
    ...identity,
    ...(model !== undefined && { model }),
    ...(serial !== undefined && { serial }),
    ...(firmware !== undefined && { firmware }),
    attributes: {
      ...attributes,
      stack: 'ami',
      nodes: files
        .names(/^ami\d+$/)
        .map((name) => `/dev/${name}`)
        .join(','),
    },
  });
}

/** Pure. */
export function addAmiState(facts: Facts, state: string | undefined): void {
  if (state === undefined) return;
  const { reason, ...more } = STATES[state] ?? {};
  const isReady = state === 'READY';
  if (!isReady && reason === undefined) return;
  facts.add(metrics.ready, isReady);
  facts.find('NotReady', !isReady, reason ?? 'Ready', `dev_state is ${state}`, isReady ? {} : more);
}

/** The PCI core's files can say "Unknown" on this board; the driver's own then fill in. */
function addLink(facts: Facts, files: BoardFiles): void {
  for (const [metric, file] of [
    [metrics.pcieWidth, 'link_width_current'],
    [metrics.pcieWidthMax, 'link_width_max'],
    [metrics.pcieGeneration, 'link_speed_current'],
    [metrics.pcieGenerationMax, 'link_speed_max'],
  ] as const) {
    if (!facts.readings.some((reading) => reading.metric === metric.name)) facts.add(metric, files.value(file, parseInteger) || undefined);
  }
}

function addAmiSensors(facts: Facts, survey: Survey, address: string): void {
  const { memory, options } = survey;
  const kinds = options['rail-sensors'] ? [...MAIN_KINDS, ...RAIL_KINDS] : MAIN_KINDS;
  const sensors = memory.atMostEvery(`${address}/sensors`, options['sensor-interval'], () => {
    const monitors = survey.monitors.filter((monitor) => monitor.address === address);
    return nameSensors(monitors.flatMap(({ path }) => readHwmon(survey.host.sys, path, { kinds, attributes: ['crit'] })));
  });
  addSensors(facts, sensors);
  for (const { kind, name, value, attributes } of sensors) {
    const critical = attributes.crit;
    if (kind !== 'temp' || value === undefined || critical === undefined || critical <= 0) continue;
    facts.add(metrics.temperatureLimit, critical, { sensor: name, limit: 'crit' });
    judgeCritical(facts, memory, address, { name, value, critical });
  }
}
