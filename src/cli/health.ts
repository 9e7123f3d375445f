import { collectOnce } from '../agent/agent.ts';
import { nearestHint } from '../config/nearest.ts';
import { UserError } from '../errors.ts';
import { nodeProblem } from '../health/journal/node-problem.ts';
import { HEALTH_STATES, type HealthState, type Remedy, type Severity } from '../model/health.ts';
import { devicesView } from '../server/api/views.ts';
import { askAgent } from './agent-api.ts';
import type { CommandContext, Ending } from './context.ts';
import { agentSettings } from './settings.ts';
import { readVersion } from './version.ts';

/** Where node-problem-detector cuts by default. */
const LINE_BYTES = 80;

/** One condition as the API tells it. */
interface ToldCondition {
  readonly type: string;
  readonly instance?: string;
  readonly severity: Severity;
  readonly reason: string;
  readonly message: string;
  readonly remedy: Remedy;
  readonly unverifiedSince?: string;
  readonly recovering?: { readonly since: string; readonly until: string };
}

interface ToldPending extends ToldCondition {
  readonly countsAt: string;
}

/** One device as the API tells it. */
interface TellingDevice {
  readonly family: string;
  readonly id: string;
  readonly aliases: readonly string[];
  readonly uuid?: string;
  readonly health: {
    readonly state: HealthState;
    readonly since?: string;
    readonly conditions: readonly ToldCondition[];
    readonly pending?: readonly ToldPending[];
  };
}

interface Judged {
  /** Undefined when the running agent has not read anything yet. */
  readonly devices: readonly TellingDevice[] | undefined;
  readonly source: 'agent' | 'one reading';
  readonly isStuck: boolean;
}

interface Answer {
  readonly status: 0 | 1 | 2;
  readonly message: string;
  readonly devices: readonly TellingDevice[];
}

/** In this protocol 1 means that the hardware has a problem: whatever else goes wrong is "unknown". */
export async function runHealth(context: CommandContext): Promise<Ending> {
  try {
    const judged = await judge(context);
    const wanted = context.options.device;
    const answer = answerFor(judged, typeof wanted === 'string' ? wanted : undefined);
    await context.output.write(written(answer, judged.source, context.options.output));
    return { status: answer.status, isStuck: judged.isStuck };
  } catch (error) {
    if (error instanceof UserError) throw error;
    context.logger.error('health could not be told', { error });
    await context.output.write(`${shortened('health could not be told; the log says why')}\n`);
    return { status: 2 };
  }
}

/** The running agent's verdicts, or those of one reading. */
async function judge({ configuration, families, logger }: CommandContext): Promise<Judged> {
  const address = String(configuration.setting('web.listen-address').value);
  const answer = await askAgent(address, '/api/v1/devices');
  const told = devicesIn(answer?.body);
  if (told !== undefined) return { devices: told, source: 'agent', isStuck: false };
  if (answer?.status === 503) return { devices: undefined, source: 'agent', isStuck: false };
  const { snapshot, ended } = await collectOnce(agentSettings(configuration, families), { logger, version: readVersion().version });
  return { devices: devicesIn(devicesView(snapshot)) ?? [], source: 'one reading', isStuck: !ended };
}

/** The devices of an answer of our API; undefined for anything else that may be listening there. */
export function devicesIn(body: unknown): readonly TellingDevice[] | undefined {
  const devices = (body as { readonly devices?: unknown } | undefined | null)?.devices;
  return Array.isArray(devices) && devices.every(isTelling) ? devices : undefined;
}

function isTelling(value: unknown): value is TellingDevice {
  const { family, id, aliases, health } = (value ?? {}) as Partial<TellingDevice>;
  return (
    typeof family === 'string' &&
    typeof id === 'string' &&
    Array.isArray(aliases) &&
    HEALTH_STATES.includes(health?.state as HealthState) &&
    Array.isArray(health?.conditions)
  );
}

function answerFor({ devices, source }: Pick<Judged, 'devices' | 'source'>, wanted: string | undefined): Answer {
  if (devices === undefined) return { status: 2, message: 'the agent has not read the hardware yet', devices: [] };
  const chosen = wanted === undefined ? devices : devices.filter((device) => isCalled(device, wanted));
  if (wanted !== undefined && chosen.length === 0) {
    return { status: 2, message: `no device ${wanted}${nearestHint(wanted, devices.flatMap(namesOf))}`, devices: [] };
  }
  const { exitCode, message } = nodeProblem(chosen.map((device) => ({ key: keyOf(device), verdict: device.health })));
  const isShort = exitCode === 0 && source !== 'agent';
  return { status: exitCode, message: isShort ? `${message} (one reading)` : message, devices: chosen };
}

const keyOf = ({ family, id }: TellingDevice): string => `${family}/${id}`;

function namesOf(device: TellingDevice): string[] {
  return [keyOf(device), device.id, ...device.aliases, ...(device.uuid === undefined ? [] : [device.uuid])];
}

function isCalled(device: TellingDevice, wanted: string): boolean {
  return namesOf(device).some((name) => name.toLowerCase() === wanted.toLowerCase());
}

function written({ status, message, devices }: Answer, source: Judged['source'], format: unknown): string {
  if (format === 'json') {
    const list = devices.map((device) => ({ device: keyOf(device), ...device.health }));
    return `${JSON.stringify({ status, message, source, devices: list }, null, 2)}\n`;
  }
  const line = `${shortened(message)}\n`;
  return format === 'text' ? line + devices.map(paragraph).join('') : line;
}

/** State of a device and below it each condition with its remedy. */
function paragraph(device: TellingDevice): string {
  const { state, since, conditions, pending = [] } = device.health;
  const rows = [
    ...conditions.map((condition) => conditionRow(condition, standingWords(condition))),
    ...pending.map((condition) => conditionRow(condition, pendingWords(condition))),
  ];
  const head = `  ${keyOf(device)} ${state}${since === undefined ? '' : ` since ${since}`}`;
  return [head, ...rows].map((row) => `${plain(row)}\n`).join('');
}

function conditionRow({ type, instance, severity, reason, message, remedy, recovering }: ToldCondition, standing: string): string {
  const name = instance === undefined ? type : `${type}/${instance}`;
  const told = recovering === undefined ? message : `it was '${message}'`;
  return `    ${severity} ${name} (${reason})${standing}: ${told}; remedy: ${remedy}`;
}

function standingWords({ recovering, unverifiedSince }: ToldCondition): string {
  const quiet = recovering === undefined ? '' : `, recovering since ${recovering.since}, withdrawn from ${recovering.until}`;
  return unverifiedSince === undefined ? quiet : `${quiet}, unverified since ${unverifiedSince}`;
}

function pendingWords({ countsAt, unverifiedSince }: ToldPending): string {
  return unverifiedSince === undefined ? `, pending, counts from ${countsAt}` : `, pending, unverified since ${unverifiedSince}`;
}

/** Fits into one line of so many bytes; what is left out shows as three dots. */
export function shortened(text: string, limit = LINE_BYTES): string {
  const line = plain(text);
  if (Buffer.byteLength(line) <= limit) return line;
  let kept = '';
  for (const character of line) {
    if (Buffer.byteLength(kept + character) > limit - 3) break;
    kept += character;
  }
  return `${kept.trimEnd()}...`;
}

/** Text from hardware must not steer a terminal or end a line. */
const plain = (text: string): string => text.replace(/\p{Cc}+/gu, ' ');
