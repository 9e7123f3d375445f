import type { RunCommand } from './context.ts';

/** One command of the command line. Its code is loaded only when it is run. */
export interface CommandSpec {
  /** Words after `device-agent`. */
  readonly name: string;
  readonly summary: string;
  /** Allowed values of `-o`, the first being the default. */
  readonly formats?: readonly string[];
  /** Plain options that only this command knows: they have no variable and no place in the file. */
  readonly options?: readonly { readonly flags: string; readonly help: string }[];
  /** What its users have to know besides. */
  readonly notes?: string;
  /** Path of an option section that only this command knows. */
  readonly ownSection?: string;
  readonly examples: readonly string[];
  load(): Promise<RunCommand>;
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'serve',
    summary: 'Run the agent until SIGTERM, SIGINT or SIGHUP.',
    examples: ['device-agent serve', 'device-agent serve --refresh.interval=5s --no-probe.fpga --log.format=json'],
    load: async () => (await import('./serve.ts')).runServe,
  },
  {
    name: 'list',
    summary: 'Read everything once and print devices, their health and who holds them.',
    formats: ['table', 'json', 'prom'],
    examples: ['device-agent list', 'device-agent list -o prom | promtool check metrics'],
    load: async () => (await import('./list.ts')).runList,
  },
  {
    name: 'health',
    summary: 'Tell whether devices are healthy, as a node-problem-detector plugin does: 0 no problem, 1 problem, 2 unknown.',
    formats: ['line', 'text', 'json'],
    options: [{ flags: '--device <id>', help: 'Only this device, by id, alias, UUID or family/id.' }],
    notes: `A running agent is asked at --web.listen-address: its verdicts have a history. Without one everything is read once, and one
reading tells less: growth of a counter needs two, and what must hold for a while before it counts does not count yet.
The line has 80 bytes at most, for that is where node-problem-detector cuts; -o text has the rest.
Wrong usage is status 2 here too, for then health is not known; nothing but sick hardware is 1.`,
    examples: ['device-agent health', 'device-agent health --device=mlx5_0', 'device-agent health -o text'],
    load: async () => (await import('./health.ts')).runHealth,
  },
  {
    name: 'doctor',
    summary: 'Check sockets, permissions, drivers and sysfs; each finding with cause and remedy.',
    formats: ['text', 'json'],
    examples: ['device-agent doctor', 'device-agent doctor -o json | jq ".checks[] | select(.status == \\"finding\\")"'],
    load: async () => (await import('./doctor/doctor.ts')).runDoctor,
  },
  {
    name: 'demo',
    summary: 'Make a simulated node of files, programs and a kubelet, and run the agent on it.',
    ownSection: 'sim',
    examples: ['device-agent demo', 'device-agent demo --sim.gpus=16 --sim.pods=100 --web.listen-address=:0'],
    load: async () => (await import('./demo.ts')).runDemo,
  },
  {
    name: 'config check',
    summary: 'Check flags, environment and file; print nothing when all is well.',
    examples: ['device-agent config check --config.file=/etc/device-agent.yaml'],
    load: async () => (await import('./config.ts')).checkConfig,
  },
  {
    name: 'config print',
    summary: 'Print the values that hold, each with its origin.',
    formats: ['yaml', 'table', 'json'],
    examples: ['device-agent config print', 'device-agent config print -o table --refresh.interval=5s'],
    load: async () => (await import('./config.ts')).printConfig,
  },
  {
    name: 'config schema',
    summary: 'Print the JSON Schema of the configuration file.',
    examples: ['device-agent config schema > device-agent.schema.json'],
    load: async () => (await import('./config.ts')).printSchema,
  },
  {
    name: 'version',
    summary: 'Print version and platform.',
    formats: ['text', 'json'],
    examples: ['device-agent version', 'device-agent version -o json'],
    load: async () => (await import('./version.ts')).printVersion,
  },
];

/** Headings of the commands that only hold others. */
export const commandGroups: Readonly<Record<string, string>> = { config: 'Check and show the configuration.' };
