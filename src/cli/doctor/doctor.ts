import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { stateOptions } from '../../agent/options.ts';
import { expectedDevices, pluginResources } from '../../config/structured.ts';
import { UserError } from '../../errors.ts';
import { systemClock } from '../../host/clock.ts';
import { readHostFacts } from '../../host/facts.ts';
import { whyUntrusted } from '../../host/fs/open-path.ts';
import { socketAt } from '../../host/fs/socket-file.ts';
import { errnoName, Tree } from '../../host/fs/tree.ts';
import { pathOptions } from '../../host/options.ts';
import type { HostFacts } from '../../model/agent-stats.ts';
import { areTooFew, type ExpectedDevices, expectedText } from '../../model/expected.ts';
import { visible } from '../../model/one-line.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { pluginOptions } from '../../plugin/options.ts';
import { type Ask, type Asked, askFor } from '../agent-api.ts';
import { BOARD_PATH, boardIn } from '../board-answer.ts';
import type { CommandContext, Ending } from '../context.ts';
import { withProgress } from '../progress.ts';
import { agentSettings } from '../settings.ts';
import { readVersion } from '../version.ts';
import { checkDevices, checkOffers, checkRunningAgent, checkSockets } from './agent-checks.ts';
import { type Check, type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';
import { checkFamilies } from './family-checks.ts';
import { checkCheckpoint, checkClaims, checkIds, checkPodResources } from './kubelet-checks.ts';
import { checkClock, checkNode, checkRoots, checkUser } from './process-checks.ts';
import { checkListenAddress, checkWebConfig } from './web-check.ts';

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** All checks, in the order of the report. */
export const checks: readonly Check[] = [
  () => checkNode(),
  checkUser,
  () => checkClock(),
  checkHost,
  checkRoots,
  checkPodResources,
  checkCheckpoint,
  checkPlugin,
  checkOffers,
  checkState,
  checkFamilies,
  checkExpected,
  checkWebConfig,
  checkDevices,
  checkClaims,
  checkIds,
  checkListenAddress,
  checkRunningAgent,
  checkSockets,
];

export async function runDoctor(context: CommandContext): Promise<Ending> {
  const { configuration, families, output, options } = context;
  let problem: UserError | undefined;
  const asking = askFor(context);
  const ask = once(async (path) => {
    try {
      return await asking(path);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      problem = error;
      return {};
    }
  });
  let isStuck = false;
  let collected: Promise<Snapshot> | undefined;
  const collect = (): Promise<Snapshot> => {
    collected ??= (async () => {
      const { collectOnce } = await import('../../agent/agent.ts');
      const { snapshot, ended } = await collectOnce(agentSettings(configuration, families), {
        logger: SILENT,
        version: readVersion().version,
      });
      isStuck = !ended;
      return snapshot;
    })();
    return collected;
  };
  const results = oneForEachCause(
    await withProgress(
      'checking the node',
      Promise.all(checks.map((check) => check({ configuration, families, ask, askProblem: () => problem, collect }))),
    ),
  );
  await output.write(formatReport(results, options.output));
  return { status: results.some(({ status }) => status === 'finding') ? 1 : 0, isStuck };
}

/** A cause that several checks meet is one finding: the first. */
export function oneForEachCause(found: readonly (readonly CheckResult[])[]): readonly CheckResult[] {
  const first = new Map<string, string>();
  return found.flat().map((result) => {
    const { name, status, detail, cause, remedy } = result;
    const key = JSON.stringify([detail, cause, remedy]);
    const known = first.get(key);
    if (status !== 'finding' || known === name) return result;
    if (known !== undefined) return skipped(name, `the same as ${known}`);
    first.set(key, name);
    return result;
  });
}

/** Each path is asked once. */
function once(ask: Ask): Ask {
  const asked = new Map<string, Promise<Asked>>();
  return (path) => {
    const answer = asked.get(path) ?? ask(path);
    asked.set(path, answer);
    return answer;
  };
}

/** Formats the report as text or as JSON. */
export function formatReport(results: readonly CheckResult[], format: unknown): string {
  const findings = results.filter(({ status }) => status === 'finding').length;
  if (format === 'json') return `${JSON.stringify({ ok: findings === 0, findings, checks: results }, null, 2)}\n`;
  const width = Math.max(0, ...results.map(({ name }) => name.length));
  const end = findings === 0 ? 'No findings.' : `${findings} ${findings === 1 ? 'finding' : 'findings'}.`;
  return `${results.map((result) => resultText(result, width)).join('')}\n${end}\n`;
}

function resultText({ name, status, detail, cause, remedy }: CheckResult, width: number): string {
  const head = `${status.toUpperCase().padEnd(7)}  ${visible(name).padEnd(width)}  ${visible(detail)}\n`;
  const indent = ' '.repeat(width + 11);
  const more = [cause && `cause:  ${visible(cause)}`, remedy && `remedy: ${visible(remedy)}`].filter(Boolean);
  return head + more.map((line) => `${indent}${line}\n`).join('');
}

/** Compares the number of devices with `expect`: as the running agent counts them, or by one reading. */
async function checkExpected({ configuration, collect, ask }: CheckContext): Promise<CheckResult[]> {
  const name = 'expected-devices';
  if (Object.keys(configuration.part(expectedDevices)).length === 0)
    return [skipped(name, 'the configuration expects no number of devices')];
  return judgeExpected((boardIn((await ask(BOARD_PATH)).answer?.body) ?? (await collect())).expected);
}

/** `expected`: undefined when the agent expects no number of devices, although the configuration does. */
export function judgeExpected(expected: readonly ExpectedDevices[] | undefined): CheckResult[] {
  const name = 'expected-devices';
  if (expected === undefined)
    return [
      finding(
        name,
        'the running agent expects no number of devices',
        'It runs with another configuration than this command.',
        'Give both the same configuration, and restart the agent.',
      ),
    ];
  const findings = expected.flatMap((one) => judge(name, one));
  return findings.length > 0 ? findings : [ok(name, expected.map(({ family, present }) => `${present} ${family}`).join(', '))];
}

function judge(name: string, one: ExpectedDevices): readonly CheckResult[] {
  if (one.present === undefined) {
    const remedy =
      'Read the findings on the probe of the family. Check that the family exists and is turned on, or remove it from `expect`.';
    return [finding(name, expectedText(one), 'The family was not read completely.', remedy)];
  }
  if (!areTooFew(one)) return [];
  const remedy = 'Search `lspci` and the kernel log for the device. Correct `expect` if the node has fewer devices.';
  return [finding(name, expectedText(one), 'A device is gone, has no driver, or was never there.', remedy)];
}

/** Describes the machine. It is never a finding, but readers of a report need it first. */
async function checkHost({ configuration, ask }: CheckContext): Promise<CheckResult[]> {
  const status = (await ask('/api/v1/status')).answer?.body as { readonly host?: HostFacts } | null | undefined;
  const sys = new Tree(configuration.section('path', pathOptions).sysfs);
  const { manufacturer, model, cpuModel, cpus, memoryBytes, operatingSystem, kernel, numaNodes } =
    status?.host ?? (await readHostFacts(sys, systemClock));
  const parts = [
    [manufacturer, model].filter(Boolean).join(' '),
    cpuModel === undefined ? '' : `${cpus ?? '?'} × ${cpuModel}`,
    memoryBytes === undefined ? '' : `${Math.round(memoryBytes / 2 ** 30)} GiB`,
    numaNodes === undefined ? '' : `${numaNodes} NUMA ${numaNodes === 1 ? 'node' : 'nodes'}`,
    operatingSystem ?? '',
    kernel === undefined ? '' : `kernel ${kernel}`,
  ];
  return [ok('host', parts.filter((part) => part !== '').join(', '))];
}

/** Checks that the health state can be saved. The agent creates missing directories, so the nearest one that exists counts. */
async function checkState({ configuration }: Pick<CheckContext, 'configuration'>): Promise<CheckResult[]> {
  const name = 'state-file';
  const { file } = configuration.section('state', stateOptions);
  if (file === '') return [skipped(name, 'turned off by an empty --state.file')];
  const untrusted = await whyUntrusted(dirname(resolve(file)));
  if (untrusted !== undefined) {
    const effect = 'The agent keeps no state there, and commands ask no socket there: others could forge both.';
    return [finding(name, `${dirname(file)} can be changed by others: ${untrusted}`, effect, 'Give it to root: chown 0:0, chmod 0755.')];
  }
  const trouble = whyUnwritable(resolve(file));
  if (trouble === undefined) return [ok(name, file)];
  return [
    finding(
      name,
      trouble,
      'The health state is lost at each restart of the agent: known faults then count anew, and latched ones are forgotten.',
      'Mount a writable directory of the host there, or set --state.file.',
    ),
  ];
}

function whyUnwritable(file: string): string | undefined {
  let directory = dirname(file);
  try {
    if (present(file)?.isFile() === false) return `${file} is not a regular file`;
    let found = present(directory);
    for (; found === undefined; found = present(directory)) directory = dirname(directory);
    if (!found.isDirectory()) return `${directory} is not a directory`;
    // Each save writes a new file and renames it.
    accessSync(directory, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `${directory} cannot be written to (${errnoName(error)})`;
  }
}

/** Versions of Node differ in what `throwIfNoEntry` means for a path below a file. */
function present(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoName(error))) return undefined;
    throw error;
  }
}

const LOSS = 'The configured resources cannot be offered to the kubelet.';

/** Checks that the plugin can create sockets where the kubelet looks for them, and that the kubelet's own socket exists. */
function checkPlugin({ configuration }: CheckContext): CheckResult[] {
  const name = 'plugin-directory';
  const count = configuration.part(pluginResources).length;
  if (count === 0) return [skipped(name, 'no resource is configured below plugin.resources')];
  const options = configuration.section('plugin', pluginOptions);
  const [option, path] = options.registration === 'watcher' ? ['registry-dir', options['registry-dir']] : ['dir', options.dir];
  const trouble = whyUnusable(path);
  if (trouble !== undefined) {
    return [finding(name, `${path} ${trouble}`, LOSS, `Mount the host's directory without readOnly, or set --plugin.${option}.`)];
  }
  const socket = join(path, 'kubelet.sock');
  if (option === 'dir' && socketAt(socket).kind !== 'socket') {
    return [finding(name, `${socket} does not exist`, LOSS, 'Check the kubelet: systemctl status kubelet. Or set --plugin.dir.')];
  }
  return [ok(name, `${path}, for ${count} ${count === 1 ? 'resource' : 'resources'}`)];
}

/** Also detects a read-only mount, where even root cannot write. */
function whyUnusable(path: string): string | undefined {
  try {
    if (!statSync(path).isDirectory()) return 'is not a directory';
    accessSync(path, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `cannot be written to (${errnoName(error)})`;
  }
}
