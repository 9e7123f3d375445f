import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { monitorsBelow, type SensorKind } from '../kit/hwmon.ts';
import type { FindingDetails, ReportBuilder } from './board.ts';
import { addInfo } from './manager.ts';
import { parseId } from './registers.ts';
import { addController } from './sensors.ts';
import { filesOf, type Survey } from './survey.ts';

/** Alveo boards of the driver ami, whose management controller (AMC) has the sensors. Source: AVED sw/AMI/driver. */

/** What the words of `dev_state` say of a board. Source: ami_top.h, enum pf_dev_state. */
const STATES: Readonly<Record<string, FindingDetails<'NotReady'>>> = {
  READY: { reason: 'Ready' },
  INIT: { reason: 'Initializing' },
  MISSING_INFO: { reason: 'DataMissing', severity: 'info' },
  INIT_ERROR: { reason: 'DataMissing', severity: 'degraded' },
  NO_AMC: { reason: 'NoController', severity: 'degraded' },
  COMPAT: { reason: 'Compatibility', severity: 'degraded' },
  SHUTDOWN: { reason: 'ShutDown', remedy: 'reboot' },
};

const KINDS: readonly SensorKind[] = ['temp', 'power', 'in', 'curr'];

/** Adds what the driver tells of a board, and returns what it is. */
export function addAmi(builder: ReportBuilder, survey: Survey, address: string): Partial<Device> {
  const files = filesOf(survey, `bus/pci/devices/${address}`, address);
  const state = files.text('dev_state') ?? '';
  const told = STATES[state];
  const status = told === undefined ? 'unknown' : state !== 'READY';
  if (state !== '') builder.find('NotReady', status, `dev_state is ${state}`, told);
  const known = (file: string): string | undefined => files.text(file)?.replace(/^(?:unknown|n\/a)$/i, '') || undefined;
  const firmware = known('amc_version');
  addInfo(builder, { stack: 'ami', accelerator_id: files.value('logic_uuid', parseId), bmc_version: firmware });
  // In the other states the driver keeps the values that it read last, or has none.
  if (state === 'READY' || state === 'MISSING_INFO')
    addController(
      builder,
      survey,
      address,
      monitorsBelow(files).map((monitor) => ({ path: files.path(monitor), kinds: KINDS })),
    );
  return defined({ stack: 'ami', model: known('dev_name'), serial: known('board_serial'), firmware });
}
