import { UserError } from '../../errors.ts';
import type { Fleet } from '../../fleet/fleet.ts';
import { devicesOf, stateName } from '../../fleet/pages/parts.ts';
import { type Prometheus, prometheusAt } from '../../fleet/prometheus.ts';
import { sentenceOf } from '../../fleet/sentence.ts';
import { fleetServer } from '../../fleet/server.ts';
import { PrometheusTrouble } from '../../fleet/trouble.ts';
import { FleetWatch, type ReadOptions, readFleet } from '../../fleet/watch.ts';
import { systemClock } from '../../host/clock.ts';
import { defined } from '../../model/defined.ts';
import { visible } from '../../model/one-line.ts';
import { listen } from '../../server/http/listen.ts';
import type { CommandContext, Ending } from '../context.ts';
import { stopSignal } from '../signals.ts';
import { textTable } from '../text-table.ts';
import { readVersion } from '../version.ts';

const DEFAULT_LISTEN = '127.0.0.1:9836';

type Options = CommandContext['options'];

const textOf = (options: Options, name: string): string | undefined => (typeof options[name] === 'string' ? options[name] : undefined);

function prometheusFor(options: Options): Prometheus {
  const address = textOf(options, 'prometheus');
  if (address === undefined || !URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw new UserError('flag-invalid', { flag: '--prometheus', problem: 'needs an address such as http://prometheus:9090' });
  const [tokenFile, caFile, certFile, keyFile, tenant] = ['tokenFile', 'caFile', 'certFile', 'keyFile', 'tenant'].map((name) =>
    textOf(options, name),
  );
  return prometheusAt({ url: new URL(address), ...defined({ tokenFile, caFile, certFile, keyFile, tenant }) });
}

const readOptionsOf = (options: Options): ReadOptions => ({ groupLabel: textOf(options, 'groupLabel') });

/** Serves the pages of the fleet until a stop signal. */
export async function runFleet({ options, logger }: CommandContext): Promise<Ending> {
  const signal = stopSignal(['SIGTERM', 'SIGINT']);
  const prometheus = prometheusFor(options);
  const watch = new FleetWatch(prometheus, readOptionsOf(options), { clock: systemClock, logger });
  const server = fleetServer({
    prometheus,
    watch,
    version: readVersion().version,
    board: textOf(options, 'board'),
    clock: systemClock,
    logger,
  });
  const address = await listen(
    server,
    textOf(options, 'listen') ?? DEFAULT_LISTEN,
    ({ problem }, cause) => new UserError('flag-invalid', { flag: '--listen', problem }, cause),
  );
  logger.info('serving', { address });
  void watch.start();
  logger.info('stopping', { signal: await signal });
  watch.stop();
  server.close();
  server.closeAllConnections();
  return { status: 0 };
}

const printing =
  (table: (fleet: Fleet) => readonly (readonly string[])[], part: (fleet: Fleet) => unknown) =>
  async ({ options, output, logger }: CommandContext): Promise<Ending> => {
    const fleet = await readOnce(options);
    for (const { question, message } of fleet.problems) logger.warn('not everything was read', { question, detail: message });
    const text =
      options.output === 'json'
        ? `${JSON.stringify(part(fleet), null, 2)}\n`
        : `${visible(sentenceOf(fleet))}.\n\n${textTable(table(fleet))}`;
    await output.write(text);
    return { status: fleet.problems.length === 0 ? 0 : 1 };
  };

async function readOnce(options: Options): Promise<Fleet> {
  try {
    return await readFleet(prometheusFor(options), readOptionsOf(options));
  } catch (error) {
    if (!(error instanceof PrometheusTrouble)) throw error;
    throw new UserError('prometheus-unread', { problem: `${error.message}. ${error.remedy.replace(/\.$/, '')}` }, error);
  }
}

const percent = (ratio: number | undefined): string => (ratio === undefined ? '' : `${Math.round(ratio * 100)}%`);
const amount = (value: number | undefined, digits = 0): string => (value === undefined ? '' : value.toFixed(digits));
/** A part of the fleet with its time, and with what was not read. */
const withMoment = ({ at, problems }: Fleet, part: object): object => ({ at, ...part, problems });

/** Prints the nodes, worst first. */
export const listFleet = printing(
  ({ nodes }) => [
    ['NODE', 'STATE', 'GROUP', 'MODELS', 'DEVICES', 'HELD', 'USE', 'FAULTS', 'HIT'],
    ...nodes.map((one) => [
      one.cluster === undefined ? one.name : `${one.cluster}/${one.name}`,
      stateName(one.state).toLowerCase(),
      one.group ?? '',
      one.models.join(', '),
      String(devicesOf(one)),
      amount(one.held),
      percent(one.utilizationRatio),
      one.faults.map(({ name, condition }) => `${name} ${condition}`).join(', '),
      [...new Set(one.faults.flatMap(({ hit }) => hit))].join(', '),
    ]),
  ],
  (fleet) => withMoment(fleet, { sentence: sentenceOf(fleet), nodes: fleet.nodes }),
);

/** Prints the capacity by model. */
export const topFleet = printing(
  ({ capacity }) => [
    ['MODEL', 'FAMILY', 'KIND', 'DEVICES', 'HELD', 'FREE', 'OUT OF SERVICE', 'NOT KNOWN'],
    ...capacity.map((one) => [
      one.model,
      one.family,
      one.kind,
      ...[one.devices, one.held, one.free, one.outOfService, one.unknown].map(String),
    ]),
  ],
  (fleet) => withMoment(fleet, { capacity: fleet.capacity, outliers: fleet.outliers }),
);

/** Prints what namespaces held and left idle in the last day, the most idle first. */
export const usageFleet = printing(
  ({ namespaces }) => [
    ['NAMESPACE', 'DEVICES NOW', 'DEVICE HOURS', 'IDLE HOURS', 'IDLE COST'],
    ...namespaces.map((one) => [
      one.cluster === undefined ? one.namespace : `${one.cluster}/${one.namespace}`,
      amount(one.devicesNow),
      amount(one.heldHours, 1),
      amount(one.idleHours, 1),
      amount(one.idleCost, 2),
    ]),
  ],
  (fleet) => withMoment(fleet, { namespaces: fleet.namespaces }),
);

/** Prints the faults of one kind on several devices as one line. */
export const incidentsFleet = printing(
  ({ faults }) => [
    ['SEVERITY', 'FAMILY', 'CONDITION', 'REASON', 'DEVICES', 'NODES', 'IN COMMON', 'HIT'],
    ...faults.map((one) => [
      one.severity,
      one.family,
      one.condition,
      one.reason,
      String(one.devices),
      one.nodes.join(', '),
      one.shared.map(({ fact, value, devices }) => `${devices} of ${one.devices} are ${fact} ${value}`).join('; '),
      one.hit.join(', '),
    ]),
  ],
  (fleet) => withMoment(fleet, { faults: fleet.faults }),
);
