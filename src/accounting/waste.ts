import { HOUR_SECONDS, type UsageRow } from './report.ts';
import { UNOBSERVED_REASONS, UNOBSERVED_TEXTS, type UnobservedReason } from './unobserved.ts';

/** How the allocated time of a row was spent. The three parts add up to 1. Delegated time is in none of them. */
export interface TimeParts {
  readonly busy: number;
  readonly idle: number;
  readonly unobserved: number;
}

/** Absent where all time was delegated. */
export function timeParts(
  row: Pick<UsageRow, 'allocatedSeconds' | 'delegatedSeconds' | 'idleSeconds' | 'unobservedSeconds'>,
): TimeParts | undefined {
  const whole = row.allocatedSeconds - (row.delegatedSeconds ?? 0);
  if (whole <= 0) return undefined;
  const unobserved = Math.min(1, row.unobservedSeconds / whole);
  const idle = Math.min(1 - unobserved, row.idleSeconds / whole);
  return { busy: 1 - unobserved - idle, idle, unobserved };
}

interface Report {
  readonly rows: readonly UsageRow[];
  readonly total: UsageRow;
  readonly currency?: string;
}

/** Less idle time than this counts as none. */
const LEAST_IDLE = 0.01;
const MOST_UNOBSERVED = 0.05;

/** One sentence about the waste, for people. Absent where no container held a device. It also says how much time was not observed, because that can be waste. */
export function wasteSentence({ rows, total, currency }: Report, nameOf = ({ name }: UsageRow): string => name): string | undefined {
  const { shareSeconds, idleShareSeconds } = total;
  const parts = timeParts(total);
  if (shareSeconds <= 0 || parts === undefined) return undefined;
  const unobserved = parts.unobserved > MOST_UNOBSERVED ? `${percent(parts.unobserved)} of the time was not observed` : undefined;
  const whole = `${hours(shareSeconds)} device hours`;
  if (parts.unobserved > 1 - MOST_UNOBSERVED) return `How much of ${whole} was idle is not known: ${unobserved}.`;
  const end = unobserved === undefined ? '.' : `; ${unobserved}.`;
  if (idleShareSeconds < shareSeconds * LEAST_IDLE)
    return unobserved === undefined ? `Nearly none of ${whole} idle.` : `Nearly no idle time was seen in ${whole}${end}`;
  const most = rows.reduce<UsageRow | undefined>((a, b) => (a === undefined || b.idleShareSeconds > a.idleShareSeconds ? b : a), undefined);
  const who =
    most === undefined || most.idleShareSeconds <= 0 ? '' : `: ${hours(most.idleShareSeconds)} of them ${nameOf(most) || 'without a name'}`;
  const cost = total.idleCost === undefined ? '' : ` Idle cost: ${moneyText(total.idleCost, currency)}.`;
  return `${hours(idleShareSeconds)} of ${whole} idle${who}${end}${cost}`;
}

/** Why a row has much time that was not observed, most first. Empty where it has little. */
export function unobservedTexts(row: UsageRow): readonly string[] {
  if ((timeParts(row)?.unobserved ?? 0) <= MOST_UNOBSERVED) return [];
  const seconds = (reason: UnobservedReason): number => row.unobservedBecause?.[reason] ?? 0;
  return UNOBSERVED_REASONS.filter((reason) => seconds(reason) > row.unobservedSeconds * MOST_UNOBSERVED)
    .toSorted((a, b) => seconds(b) - seconds(a))
    .map((reason) => UNOBSERVED_TEXTS[reason]);
}

/** An amount of money. Without a currency the unit is that of the prices. */
export const moneyText = (amount: number, currency = ''): string => `${amount.toFixed(2)}${currency === '' ? '' : ` ${currency}`}`;

const percent = (part: number): string => `${Math.round(part * 100)} %`;
/** Short amounts have a digit more, so that 20 minutes are not 0. */
function hours(seconds: number): string {
  const amount = seconds / HOUR_SECONDS;
  return amount < 1 ? amount.toFixed(2) : amount < 10 ? String(Number(amount.toFixed(1))) : String(Math.round(amount));
}
