import type { Tree } from '../../host/fs/tree.ts';
import { canMeasure, parseInteger, type SensorKind, sensorSlug } from '../../host/hwmon.ts';
import { IMPOSSIBLE } from '../kit/sensor-limits.ts';
import { isPresent, type NamedSensor } from './sensors.ts';

/** A sensor with its upper thresholds, keyed by the label value of the limit. */
export interface SdmSensor extends NamedSensor {
  readonly limits: Readonly<Record<string, number>>;
}

const LIMITS = { upper_warn: 'max', upper_critical: 'crit', upper_fatal: 'emergency' } as const;
const INPUT = /^(temp|in|curr|power)(\d+)_input$/;

/** Parses `unitm`, the decimal exponent of a sensor: raw × 10^exponent is the value in the base unit. */
function parseExponent(text: string | undefined): number | undefined {
  const exponent = parseInteger(text ?? '');
  return exponent !== undefined && Math.abs(exponent) <= 12 ? exponent : undefined;
}

/** Scales a raw integer. It divides for negative exponents, so that 12064 with -3 gives exactly 12.064. */
export function scaleSdm(raw: number, exponent: number): number {
  return exponent < 0 ? raw / 10 ** -exponent : raw * 10 ** exponent;
}

const isLimit = ([, value]: readonly [string, number]): boolean => canMeasure('temp', value);

/**
 * Reads the sensors of `hwmon_sdm` (Versal boards). They look like hwmon, but each value has its own unit in a separate file. A sensor
 * that is not "present and valid" has no value. Each read costs a message to the management function, so only needed files are read.
 */
export function readSdm(sys: Tree, directory: string, kinds: readonly SensorKind[]): readonly SdmSensor[] {
  const files = new Set(sys.list(directory));
  const inputs = [...files].map((file) => INPUT.exec(file)).filter((match) => match !== null);
  return inputs.flatMap((match) => {
    const [, kind, number] = match as unknown as readonly [string, SensorKind, string];
    const channel = `${kind}${number}`;
    if (!kinds.includes(kind)) return [];
    const text = (suffix: string): string | undefined =>
      files.has(`${channel}_${suffix}`) ? sys.text(`${directory}/${channel}_${suffix}`) : undefined;
    if (!isPresent(text('status'))) return [];
    const exponent = parseExponent(text('unitm') ?? '0');
    const raw = parseInteger(text('input') ?? '');
    if (exponent === undefined || raw === undefined) return [];
    const limits = Object.entries(LIMITS).flatMap(([suffix, limit]) => {
      const value = kind === 'temp' ? parseInteger(text(suffix) ?? '') : undefined;
      return value === undefined || value === 0 ? [] : [[limit, scaleSdm(value, exponent)] as const];
    });
    const label = text('label') ?? '';
    const name = sensorSlug(label) || channel;
    return [
      {
        kind,
        channel,
        label,
        name,
        value: scaleSdm(raw, exponent),
        attributes: {},
        attributeErrors: Object.fromEntries(limits.filter((each) => !isLimit(each)).map(([limit]) => [limit, IMPOSSIBLE])),
        limits: Object.fromEntries(limits.filter(isLimit)),
      },
    ];
  });
}
