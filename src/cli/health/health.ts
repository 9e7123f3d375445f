import { probationText } from '../../board/condition-text.ts';
import { nearestHint } from '../../config/nearest.ts';
import { UserError } from '../../errors.ts';
import { LINE_BYTES, nodeProblem } from '../../health/journal/node-problem.ts';
import { defined } from '../../model/defined.ts';
import { deviceKey } from '../../model/device.ts';
import type { ExpectedDevices } from '../../model/expected.ts';
import { type FamilyReading, familyReadingsIn } from '../../model/family-reading.ts';
import { oneLine, shortened } from '../../model/one-line.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { askFor, printAge, REFUSAL_TEXTS } from '../agent-api.ts';
import { type ApiCondition, type ApiDevice, type ApiPending, devicesIn, expectedIn, probationIn } from '../api-device.ts';
import type { CommandContext, Ending } from '../context.ts';
import { withProgress } from '../progress.ts';
import { agentSettings, nodeName } from '../settings.ts';
import { readVersion } from '../version.ts';
import { sickDevice, taintRules } from './taint-rules.ts';

interface Judged {
  /** Undefined when the running agent has not read anything yet. */
  readonly devices: readonly ApiDevice[] | undefined;
  readonly expected: readonly ExpectedDevices[];
  readonly families: readonly FamilyReading[] | undefined;
  readonly source: 'agent' | 'one reading';
  /** When the agent took the snapshot. */
  readonly takenAt?: string | undefined;
  readonly isStuck: boolean;
}

interface Answer {
  readonly status: 0 | 1 | 2;
  readonly message: string;
  readonly devices: readonly ApiDevice[];
}

/** In this protocol the status 1 means unhealthy hardware. Every other failure is 2, "unknown". */
export async function runHealth(context: CommandContext): Promise<Ending> {
  if (context.options.npd !== undefined) return await (await import('./npd.ts')).runNodeCondition(context);
  try {
    const judged = await withProgress('reading the health', judge(context));
    const wanted = context.options.device;
    const answer = answerFor(judged, typeof wanted === 'string' ? wanted : undefined);
    const { output } = context.options;
    await context.output.write(output === 'taint-rule' ? writtenRules(answer, context.families) : written(answer, judged, output));
    if (output === 'text') printAge(judged.takenAt);
    return { status: answer.status, isStuck: judged.isStuck };
  } catch (error) {
    if (error instanceof UserError) throw error;
    context.logger.error('health could not be determined', { error });
    const mark = context.options.output === 'taint-rule' ? '# ' : '';
    await context.output.write(`${mark}${shortened('health could not be determined; see the log', LINE_BYTES)}\n`);
    return { status: 2 };
  }
}

/** Returns the verdicts of the running agent, or those of one reading. */
async function judge(context: CommandContext): Promise<Judged> {
  const { answer, refusal } = await askFor(context)('/api/v1/devices');
  const reported = devicesIn(answer?.body);
  if (reported !== undefined)
    return {
      devices: reported,
      expected: expectedIn(answer?.body) ?? [],
      families: familyReadingsIn(answer?.body),
      source: 'agent',
      takenAt: takenAtIn(answer?.body),
      isStuck: false,
    };
  if (answer?.status === 503) return { devices: undefined, expected: [], families: [], source: 'agent', isStuck: false };
  const { logger } = context;
  if (refusal !== undefined) logger.warn('the running agent cannot be asked; this is one reading', REFUSAL_TEXTS[refusal]);
  const { configuration, families } = context;
  const [{ collectOnce }, { devicesView }] = await Promise.all([import('../../agent/agent.ts'), import('../../server/api/views.ts')]);
  const { snapshot, ended } = await collectOnce(agentSettings(configuration, families), { logger, version: readVersion().version });
  const view = devicesView(snapshot);
  const { expected = [] } = snapshot;
  return { devices: devicesIn(view) ?? [], expected, families: familyReadingsIn(view), source: 'one reading', isStuck: !ended };
}

const takenAtIn = (body: unknown): string | undefined => (body as { readonly takenAt?: string }).takenAt;

function answerFor({ devices, expected, families, source }: Judged, wanted: string | undefined): Answer {
  if (devices === undefined) return { status: 2, message: 'the agent has not read the hardware yet', devices: [] };
  const chosen = wanted === undefined ? devices : devices.filter((device) => isCalled(device, wanted));
  if (wanted !== undefined && chosen.length === 0) {
    return { status: 2, message: `no device ${wanted}${nearestHint(wanted, devices.flatMap(namesOf))}`, devices: [] };
  }
  const judged = chosen.map((device) => ({ key: deviceKey(device), verdict: device.health }));
  // A question about one device is answered by its own family, and by no other device.
  const ofChosen = families
    ?.filter(({ family }) => chosen.some((device) => device.family === family))
    .map(({ family, complete, problem }) => defined({ family, complete, problem }));
  const { exitCode, message } = nodeProblem(
    wanted === undefined ? { devices: judged, families, expected } : { devices: judged, families: ofChosen, expected: [] },
  );
  const isShort = exitCode === 0 && source !== 'agent';
  return { status: exitCode, message: isShort ? `${message} (one reading)` : message, devices: chosen };
}

function namesOf(device: ApiDevice): string[] {
  return [deviceKey(device), device.id, ...device.aliases, ...(device.uuid === undefined ? [] : [device.uuid])];
}

function isCalled(device: ApiDevice, wanted: string): boolean {
  return namesOf(device).some((name) => name.toLowerCase() === wanted.toLowerCase());
}

function written({ status, message, devices }: Answer, { source, takenAt }: Judged, format: unknown): string {
  if (format === 'json') {
    const list = devices.map((device) => ({ device: deviceKey(device), ...device.health }));
    return `${JSON.stringify({ status, message, source, takenAt, devices: list }, null, 2)}\n`;
  }
  const line = `${shortened(message, LINE_BYTES)}\n`;
  return format === 'text' ? line + devices.map(paragraph).join('') : line;
}

/** The message of the status is a comment, so that `kubectl apply` accepts all of the text. */
function writtenRules({ message, devices }: Answer, families: readonly DeviceFamily[]): string {
  const sick = devices.filter(({ health }) => health.state === 'unhealthy').map((device) => sickDevice(device, families));
  const version = sick.length === 0 ? '' : '# Before Kubernetes 1.37 replace v1: by v1beta2 (1.36), by v1alpha3 (1.33 to 1.35).\n';
  return `# ${shortened(message, LINE_BYTES)}\n${version}${taintRules(sick, nodeName())}`;
}

/** Formats the state of a device, and below it each condition with its remedy. */
function paragraph(device: ApiDevice): string {
  const { state, since, conditions, pending = [], unchecked = [], probation } = device.health;
  const rows = [
    ...conditions.map((condition) => conditionRow(condition, standingText(condition))),
    ...pending.map((condition) => conditionRow(condition, pendingText(condition))),
  ];
  const head = `  ${deviceKey(device)} ${state}${since === undefined ? '' : ` since ${since}`}`;
  const open = unchecked.length === 0 ? [] : [`    not checked: ${unchecked.join(', ')}`];
  const trial = probation === undefined ? [] : [`    ${probationText(probationIn(probation))}`];
  return [head, ...rows, ...open, ...trial].map((row) => `${oneLine(row)}\n`).join('');
}

function conditionRow({ type, instance, severity, reason, message, remedy, recovering }: ApiCondition, standing: string): string {
  const name = instance === undefined ? type : `${type}/${instance}`;
  const text = recovering === undefined ? message : `it was '${message}'`;
  return `    ${severity} ${name} (${reason})${standing}: ${text}; remedy: ${remedy}`;
}

function standingText({ recovering, unverifiedSince }: ApiCondition): string {
  const quiet = recovering === undefined ? '' : `, recovering since ${recovering.since}, withdrawn from ${recovering.until}`;
  return unverifiedSince === undefined ? quiet : `${quiet}, unverified since ${unverifiedSince}`;
}

function pendingText({ countsAt, unverifiedSince }: ApiPending): string {
  return unverifiedSince === undefined ? `, pending, counts from ${countsAt}` : `, pending, unverified since ${unverifiedSince}`;
}
