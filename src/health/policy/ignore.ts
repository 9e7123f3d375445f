import type { Device } from '../../model/device.ts';
import { deviceKey } from '../../model/device.ts';
import { matchesAny } from '../../model/excluded.ts';
import { FLAPPING } from './own-conditions.ts';
import type { IgnoreConfig } from './policy-config.ts';

/** A parsed ignore rule. */
export interface IgnoreRule {
  readonly device: string;
  readonly condition: string;
  readonly reason: string;
  readonly untilMs: number;
}

const DAY_MS = 86_400_000;

/** Undefined when `until` is not a date. */
export function ignoreRule(config: IgnoreConfig): IgnoreRule | undefined {
  const { device, condition, reason, until } = config;
  const text = until.trim();
  const dayOnly = /^\d{4}-\d{2}-\d{2}$/.test(text);
  const time = /T|\s/.test(text) && !/(Z|[+-]\d{2}:?\d{2})$/.test(text) ? `${text.replace(' ', 'T')}Z` : text.replace(' ', 'T');
  const parsed = Date.parse(dayOnly ? `${text}T00:00:00Z` : time);
  return Number.isNaN(parsed) || !isDay(text.slice(0, 10))
    ? undefined
    : { device, condition, reason, untilMs: dayOnly ? parsed + DAY_MS : parsed };
}

/** False for dates like February 31, which the parser accepts as a day in March. */
function isDay(text: string): boolean {
  const midnight = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(text);
}

/** The ignore rule that covers a condition now; of several, the one that ends last. */
export function matchingIgnore(
  rules: readonly IgnoreRule[],
  device: Device,
  type: string,
  instance: string | undefined,
  nowMs: number,
): IgnoreRule | undefined {
  let found: IgnoreRule | undefined;
  for (const rule of rules) {
    if (rule.untilMs <= nowMs || (found !== undefined && found.untilMs >= rule.untilMs)) continue;
    if (matchesCondition(rule.condition, type, instance) && matchesDevice(rule.device, device)) found = rule;
  }
  return found;
}

function matchesDevice(pattern: string, device: Device): boolean {
  return [deviceKey(device), device.id, ...device.aliases].some((name) => matchesAny([pattern.toLowerCase()], name.toLowerCase()));
}

/** A rule for a condition also covers the flapping of that condition. */
function matchesCondition(pattern: string, type: string, instance: string | undefined): boolean {
  const full = instance === undefined ? type : `${type}/${instance}`;
  if (pattern === '*' || pattern === type || pattern === full) return true;
  if (type !== FLAPPING || instance === undefined) return false;
  return pattern === instance || pattern === instance.split('/')[0];
}
