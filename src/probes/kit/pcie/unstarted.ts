import type { Host } from '../../../host/host.ts';
import { BusFunctions } from '../../../host/pci/functions.ts';
import type { Collection, DeviceReport } from '../../../model/collection.ts';
import type { PciSign } from '../../../model/declaration.ts';
import type { Device } from '../../../model/device.ts';
import { minutes } from '../../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../../model/health.ts';
import { raise } from '../finding.ts';
import { type LogRow, logCondition } from '../log-row.ts';
import { expectedFunctions } from './unshown.ts';

/** A card that the driver never started, in comparison with its siblings. */
export const notStarted = {
  type: 'NotStarted',
  class: 'in-progress',
  severity: 'fatal',
  reasons: ['NotBound', 'Started'],
  meaning: 'No driver is bound to the card, although its driver is bound to another card of the same model.',
  remedy: 'reboot',
  source: '/sys/bus/pci/devices: driver, compared with the functions of the same vendor and device',
  forMs: minutes(2),
} as const satisfies ConditionSpec;

/** The driver itself says so. */
export const startFailed = logCondition({
  type: 'StartFailed',
  severity: 'fatal',
  meaning: 'The driver could not start the card.',
  remedy: 'reboot',
  source:
    'kernel log: Linux drivers/base/dd.c "probe with driver … failed with error", before Linux 6.10 "probe of … failed with error"; ends when the driver starts',
});

const failed = (driver: string): Omit<LogRow, 'name' | 'text'> => ({
  drivers: [driver],
  means: `the driver could not start the card: error {error}`,
  source: 'Linux drivers/base/dd.c, call_driver_probe',
  words: { error: { '-12': 'out of memory', '-19': 'no device', '-22': 'invalid', '-62': 'timer expired', '-110': 'timed out' } },
  raises: { condition: startFailed },
});

/** Lines of the driver core about a driver that could not start. The old form begins with too few fixed bytes for drivers with short names. */
export const startRows = (driver: string): readonly LogRow[] => [
  { name: 'start-failed', text: /^probe with driver \w+ failed with error (?<error>-?\d+)/, ...failed(driver) },
  ...(`${driver}: probe of `.length < 16
    ? []
    : [
        {
          name: 'old-start-failed',
          ...failed(driver),
          text: new RegExp(
            `^${driver}: probe of (?<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]) failed with error (?<error>-?\\d+)`,
          ),
          withoutDevice: { class: 'pci', name: '{device}' },
        },
      ]),
];

interface Wanted {
  readonly signs: readonly PciSign[];
  readonly drivers: readonly string[];
  /** Kind of device that a card is. */
  readonly kind: string;
  /** The device of a card that has no driver. */
  device(pciAddress: string): Device;
}

/** Adds the cards that have no driver while a sibling has one, or whose driver failed by the kernel log: the family lists only cards with a driver. */
export class UnstartedCards {
  readonly #functions: BusFunctions;
  readonly #wanted: Wanted;

  constructor({ sys }: Host, wanted: Wanted) {
    this.#functions = new BusFunctions(sys, wanted.signs);
    this.#wanted = wanted;
  }

  /** `nowMs` is monotonic. `hasFailed`: whether the log says that the driver could not start a card. */
  added(collection: Collection, nowMs: number, hasFailed: (pciAddress: string) => boolean): Collection {
    const { drivers, kind, device } = this.#wanted;
    const functions = this.#functions.read(nowMs);
    const expected = drivers.flatMap((driver) => expectedFunctions(functions, driver));
    const isBound = new Set(expected.flatMap(({ address, state }) => (state === 'bound' ? [address] : [])));
    const alone = functions.flatMap(({ address, driver, isVirtual }) =>
      driver === undefined && !isVirtual && hasFailed(address) ? [address] : [],
    );
    const missing = new Set(expected.flatMap(({ address, state }) => (state === 'unbound' ? [address] : [])));
    const listed = new Set(collection.reports.map((report) => report.device.id));
    const own = collection.reports.map((report): DeviceReport => {
      const {
        device: { pciAddress = '', kind: of },
        read,
      } = report;
      if (of !== kind || read === undefined || !isBound.has(pciAddress)) return report;
      return { ...report, read: { ...read, findings: [...read.findings, started] } };
    });
    const others = [...new Set([...missing, ...alone])].sort().flatMap((address): DeviceReport[] => {
      const card = device(address);
      if (listed.has(card.id)) return [];
      return [{ device: card, read: { readings: [], findings: missing.has(address) ? [unbound(address)] : [] } }];
    });
    if (others.length === 0) return { ...collection, reports: own };
    return { ...collection, reports: [...own, ...others], listing: collection.listing === 'absent' ? 'complete' : collection.listing };
  }
}

const started: Finding = raise(notStarted, 'Started', { status: false, message: 'a driver is bound to the card' });

const unbound = (address: string): Finding =>
  raise(notStarted, 'NotBound', {
    status: true,
    message: `no driver is bound to PCI function ${address}, and one is to another card of this model`,
  });
