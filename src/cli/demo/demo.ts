import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type RunningAgent, startAgent } from '../../agent/agent.ts';
import { boardOf, declaredBy } from '../../board/board.ts';
import { type Configuration, type Flags, loadConfiguration } from '../../config/configuration.ts';
import { variableOf } from '../../config/registry.ts';
import { systemWords, UserError } from '../../errors.ts';
import { systemClock } from '../../host/clock.ts';
import { LONGEST_SOCKET_PATH } from '../../host/fs/socket-file.ts';
import { visible } from '../../model/one-line.ts';
import type { Declaration } from '../../probes/declared/declaration.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { simulationOf } from '../../sim/declared-simulation.ts';
import { simulatedFamilies } from '../../sim/families.ts';
import type { SimulatedFamily } from '../../sim/family-simulation.ts';
import { SimulatedNode } from '../../sim/node.ts';
import { type SimulationOptions, simulationOptions } from '../../sim/options.ts';
import { sizesOf, sizeText } from '../../sim/sizes.ts';
import { captureFault, readCapture } from '../capture/file.ts';
import { usedConfig } from '../config.ts';
import type { CommandContext, Ending } from '../context.ts';
import { ReplayedNode } from '../replay/node.ts';
import { stopInTime } from '../serve/serve.ts';
import { agentSettings, logSettings, nodeName } from '../settings.ts';
import { stopSignal } from '../signals.ts';
import { readVersion } from '../version.ts';
import { type ControlServer, serveControl } from './control.ts';
import { DemoNarrator } from './narrator.ts';

/** The demo refreshes more often than the default, so that users soon see changes. */
const REFRESH = 'refresh.interval';
const DEMO_REFRESH = '1s';
/** The demo tells in sentences what its node does; a line of the log has all that is known of an event. */
const LOG_LEVEL = 'log.level';
/** Lines for a shell: they lead all commands to the node of the demo. */
const ENV_FILE = 'env';
/** A demo is for its user only. */
const ADDRESS = 'web.listen-address';
const EXTERNAL = 'web.external-url';
const LOOPBACK = '127.0.0.1:9835';

/** Creates a simulated node and runs the agent on it until a signal arrives or the reader closes the output. */
export async function runDemo(context: CommandContext): Promise<Ending> {
  if (context.options.replay !== undefined) return await runReplayDemo(context);
  const { configuration, families, logger, output } = context;
  if (isDefault(configuration, LOG_LEVEL)) logger.adjust({ ...logSettings(configuration), level: 'error' });
  const ended = Promise.race([stopSignal(), new Promise<'closed'>((resolve) => output.onClosed(() => resolve('closed')))]);
  const size = configuration.section('sim', simulationOptions);
  const simulated = [...simulatedFamilies, ...families.flatMap(declaredSimulation)];
  const node = await startNode(simulated, size);
  let agent: RunningAgent | undefined;
  let control: ControlServer | undefined;
  try {
    const flags = demoFlags(node.flags(), new Map([...addressFlags(context), ...context.flags]));
    const { configuration: ofNode } = await loadConfiguration(context.registry, context.environment, flags);
    agent = await startAgent(agentSettings(ofNode, families), {
      logger,
      version: readVersion().version,
      printed: usedConfig(context, () => ofNode),
    });
    control = await serveControl(node, agent.address);
    const env = join(node.root, ENV_FILE);
    writeFileSync(env, environmentOf(flags), { mode: 0o600 });
    const what = sizeText(node.counts, sizesOf(simulated), size.pods);
    await output.write(welcome(agent.address, what, size.story === 'on', env));
    tell(agent, context);
    const trouble = await Promise.race([ended, node.broken.then(systemFault)]);
    // A large node is busy with its steps: the agent ends without them.
    node.halt();
    const isStuck = !(await stopInTime(agent, logger));
    if (trouble instanceof Error) throw trouble;
    return { status: 0, isStuck };
  } finally {
    await control?.close();
    await node.stop();
  }
}

function declaredSimulation({ name, declared }: DeviceFamily): readonly SimulatedFamily[] {
  const simulation = declared === undefined ? undefined : simulationOf((declared as { readonly declaration: Declaration }).declaration);
  return simulation === undefined ? [] : [{ name, simulation }];
}

/** A system error concerns the directory, so the user can fix it: it becomes a user error. */
async function startNode(simulated: readonly SimulatedFamily[], size: SimulationOptions): Promise<SimulatedNode> {
  let node: SimulatedNode | undefined;
  try {
    node = new SimulatedNode(simulated, size);
    if (Buffer.byteLength(node.kubelet.podResourcesSocket) > LONGEST_SOCKET_PATH)
      throw failed(`the paths of its sockets would have more than ${LONGEST_SOCKET_PATH} bytes`);
    await node.start();
    return node;
  } catch (error) {
    await node?.stop();
    throw systemFault(error);
  }
}

const systemFault = (error: unknown): unknown =>
  typeof (error as NodeJS.ErrnoException).errno === 'number' ? failed(systemWords(error), error) : error;

const failed = (problem: string, cause?: unknown): UserError => new UserError('demo-failed', { directory: tmpdir(), problem }, cause);

/** Merges the flags; the user's flags override the node's flags. */
export function demoFlags(nodeFlags: readonly string[], given: Flags): Flags {
  const own = nodeFlags.map((flag): [string, string] => {
    const at = flag.indexOf('=');
    return [flag.slice('--'.length, at), flag.slice(at + 1)];
  });
  return new Map<string, string | boolean>([[REFRESH, DEMO_REFRESH], ...own, ...given]);
}

/** The address of the demo, and that its records and alerts name it. */
function addressFlags({ configuration }: CommandContext): readonly (readonly [string, string])[] {
  const address = isDefault(configuration, ADDRESS) ? LOOPBACK : String(configuration.setting(ADDRESS).value);
  const [, host = '', port = '0'] = /^(.*):(\d+)$/.exec(address) ?? [];
  return [[ADDRESS, address], ...(port === '0' ? [] : [[EXTERNAL, `http://${host || 'localhost'}:${port}`] as const])];
}

const isDefault = (configuration: Configuration, key: string): boolean => configuration.setting(key).origin.from === 'default';

/** Sets the variables of the agent's options, for `.` in a shell. Commands find the agent by its state file, and a later demo has the usual address. */
function environmentOf(flags: Flags): string {
  const quoted = (value: string | boolean): string => `'${String(value).replaceAll("'", "'\\''")}'`;
  return [...flags]
    .filter(([key]) => key !== ADDRESS && !key.startsWith('sim.'))
    .map(([key, value]) => `export ${variableOf(key)}=${quoted(value)}\n`)
    .join('');
}

/** Writes what changes on the node, as it changes. */
function tell(agent: RunningAgent, { families, output }: CommandContext): void {
  const [story, declared] = [new DemoNarrator(), declaredBy(families)];
  agent.follow((snapshot) => {
    const lines = story.lines(boardOf(snapshot, { nowMs: systemClock.now(), node: nodeName(), ...declared }));
    if (lines.length > 0) void output.write(`${lines.join('\n')}\n`);
  });
}

function welcome(address: string, what: string, hasStory: boolean, env: string): string {
  const curl = address.startsWith('unix:')
    ? `curl -s --unix-socket ${address.slice('unix:'.length)} http://localhost`
    : `curl -s ${address}`;
  return `A simulated node with ${what}.

  Page           ${address}/
  Metrics        ${curl}/metrics | grep ^container_device_
  Devices        ${curl}/api/v1/devices
  Allocations    ${curl}/api/v1/allocations
  Device plugin  ${curl}/metrics | grep ^device_agent_plugin_

In another terminal, commands such as health, top and incidents know this node after

  . ${env}

${hasStory ? 'Faults begin and end by themselves; begin your own in another terminal:' : 'Begin and end faults in another terminal:'}

  ${ownCommand()} demo fault

Ctrl-C ends the demo and removes all its files. Changes on the node follow:

`;
}

/** Runs the agent on a captured node until a signal arrives or the reader closes the output. After the second read the node stays as it is. */
async function runReplayDemo(context: CommandContext): Promise<Ending> {
  const { registry, environment, families, logger, output, options, flags } = context;
  const ended = Promise.race([stopSignal(), new Promise<'closed'>((resolve) => output.onClosed(() => resolve('closed')))]);
  const file = String(options.replay);
  const capture = await readCapture(file);
  const [first, second] = capture.reads;
  const node = new ReplayedNode(capture, families, Math.max(0, systemClock.now() - first.wallMs));
  try {
    await node.show(0);
    const { configuration } = await loadConfiguration(
      registry,
      environment,
      new Map([[REFRESH, '2s'], ...addressFlags(context), ...node.flags(registry, flags)]),
    );
    const settings = agentSettings(configuration, families);
    const roots = { ...settings.roots, isReplay: true } as const;
    const agent: RunningAgent = await startAgent(
      { ...settings, roots },
      { logger, version: readVersion().version, printed: usedConfig(context, () => configuration) },
    );
    await output.write(replayWelcome(agent.address, visible(file)));
    const trouble = await Promise.race([
      ended,
      pause(second.atMs - first.atMs, undefined, { ref: false })
        .then(() => node.show(1))
        .then(
          () => ended,
          (error: Error) => error,
        ),
    ]);
    const isStuck = !(await stopInTime(agent, logger));
    if (trouble instanceof Error) throw trouble;
    return { status: 0, isStuck };
  } catch (error) {
    throw captureFault(file, error);
  } finally {
    node.stop();
  }
}

const replayWelcome = (address: string, file: string): string => `The node of the capture ${file}.

  Page           ${address}/
  Metrics        ${address}/metrics

Ctrl-C ends the demo and removes all its files.
`;

/** Returns the command line that starts this program from the current directory. */
function ownCommand(): string {
  const [, script = ''] = process.argv;
  return basename(script) === 'device-agent' ? 'device-agent' : `node ${relative(process.cwd(), script)}`;
}
