import { healthPolicy } from '../../agent/health-policy.ts';
import { readPolicyFile } from '../../config/policy-file.ts';
import { UserError } from '../../errors.ts';
import { createFindingsLog } from '../../health/journal/findings-log.ts';
import type { HealthPolicy } from '../../health/policy/policy.ts';
import { RecordingReader } from '../../health/rehearsal/read-recording.ts';
import type { Recording } from '../../health/rehearsal/recording.ts';
import { type Rehearsal, rehearse } from '../../health/rehearsal/rehearsal.ts';
import { systemClock } from '../../host/clock.ts';
import type { LineLogRead } from '../../host/fs/line-log.ts';
import { hours, parseDuration } from '../../model/duration.ts';
import type { CommandContext, Ending } from '../context.ts';
import { agentSettings } from '../settings.ts';
import { rehearsalJson, rehearsalText } from './what-if-text.ts';

/** A shorter wait needs no sign of life. */
const PATIENCE_MS = 2_000;

/** Judges the recorded past by another policy. Status 0: no device differs, 1: a device differs. All errors have the status 2. */
export async function runWhatIf(context: CommandContext): Promise<Ending> {
  const { options, output } = context;
  const file = String(options.whatIf);
  if (options.output === 'taint-rule')
    throw new UserError('flag-invalid', { flag: '--output', problem: 'must be text or json with --what-if' });
  const sinceMs = systemClock.now() - lengthOf(options.since);
  const policies = await policiesOf(context, file);
  const { recording, read } = await readRecord(context);
  const rehearsal = await rehearse(recording, policies, sinceMs, progress());
  if (rehearsal === undefined)
    throw new UserError('findings-absent', { since: new Date(sinceMs).toISOString(), problem: whyAbsent(read, recording) });
  const shown = ofDevice(rehearsal, recording, options.device);
  await output.write(options.output === 'json' ? rehearsalJson(shown) : rehearsalText(shown, file === '-' ? 'other' : file));
  return { status: shown.devices.some(({ isDifferent }) => isDifferent) ? 1 : 0 };
}

function lengthOf(given: unknown): number {
  if (given === undefined) return hours(7 * 24);
  const length = parseDuration(String(given));
  if (length !== undefined && length > 0) return length;
  throw new UserError('flag-invalid', { flag: '--since', problem: `must be a duration such as 7d or 12h, not ${JSON.stringify(given)}` });
}

/** A rule without effect would make the rehearsal of a mistyped policy look harmless, so it is an error. */
async function policiesOf(
  { configuration, families, registry }: CommandContext,
  file: string,
): Promise<{ readonly present: HealthPolicy; readonly other: HealthPolicy }> {
  const settings = agentSettings(configuration, families);
  const health = await readPolicyFile(file, registry);
  const { policy: other, problems } = healthPolicy({ ...settings, health });
  if (problems.length > 0) {
    throw new UserError('policy-file-invalid', { file, problems: problems.map((problem) => `  ${file}: ${problem}`).join('\n') });
  }
  return { present: healthPolicy(settings).policy, other };
}

async function readRecord({
  configuration,
  families,
  logger,
}: CommandContext): Promise<{ readonly recording: Recording; readonly read: LineLogRead }> {
  const { state } = agentSettings(configuration, families);
  const reader = new RecordingReader();
  if (state.file === '') return { recording: reader.recording(), read: { damagedLines: 0, newerFiles: 0, error: 'state.file is empty' } };
  const log = createFindingsLog({
    stateFile: state.file,
    keepDays: state['journal-days'],
    keepMib: state['journal-mib'],
    clock: systemClock,
  });
  const read = await log.read(0, (record) => reader.take(record));
  const recording = reader.recording();
  if (read.error !== undefined) logger.warn('a part of the recorded findings cannot be read', { error: read.error });
  if (read.newerFiles > 0) logger.warn('files of a newer version of the agent are not read', { files: read.newerFiles });
  const damaged = read.damagedLines + recording.brokenRecords;
  if (damaged > 0) logger.warn('a part of the recorded findings is damaged; it counts as a time without an agent', { records: damaged });
  return { recording, read };
}

function whyAbsent({ error, newerFiles }: LineLogRead, { ticks, brokenRecords }: Recording): string {
  if (ticks.length > 0) return 'the record ends earlier';
  if (error !== undefined) return error;
  if (newerFiles > 0) return 'the files are from a newer version of the agent';
  return brokenRecords > 0 ? 'the record is damaged' : 'there is no record';
}

/** Only the chosen device, with the same totals: they are of the node. */
function ofDevice(rehearsal: Rehearsal, recording: Recording, wanted: unknown): Rehearsal {
  if (wanted === undefined) return rehearsal;
  const name = String(wanted).toLowerCase();
  const devices = rehearsal.devices.filter(({ key }) => {
    const device = recording.devices.get(key)?.findLast(({ input }) => input !== undefined)?.input?.device;
    return [key, device?.id, device?.uuid, ...(device?.aliases ?? [])].some((one) => one?.toLowerCase() === name);
  });
  if (devices.length === 0) throw new UserError('flag-invalid', { flag: '--device', problem: `no recorded device ${String(wanted)}` });
  return { ...rehearsal, devices };
}

/** Lets other work run between two devices. Shows the progress on a terminal when it takes long. */
function progress(): (done: number, all: number) => Promise<void> {
  const begunMs = systemClock.monotonic();
  return async (done, all) => {
    if (process.stderr.isTTY && systemClock.monotonic() - begunMs > PATIENCE_MS) {
      process.stderr.write(done === all ? '\r\u001b[K' : `\rdevice ${done} of ${all}`);
    }
    await new Promise((resolve) => setImmediate(resolve));
  };
}
