import { VIEW_SORTS } from '../board/view.ts';
import { NODE_EVENT } from '../health/journal/node-problem.ts';
import { NODE_CONDITIONS } from '../model/known-well.ts';
import type { CommandSpec } from './command-spec.ts';

/** Option of all commands that ask the agent. */
const readOption = { flags: '--read', help: 'Read by this command, and ask no agent.' } as const;

const ASKS =
  'The command asks the running agent, by the socket beside --state.file, or at --web.listen-address when you give it and no --state.file';

const rowsOption = {
  flags: '--by <group>',
  help: 'Rows by device tree, by pod, or by placement (NUMA, PCIe).',
  choices: ['device', 'pod', 'placement'],
} as const;

/** Chooses one of several demos. */
const demoOption = { flags: '--demo <pid>', help: 'Process id of the demo. (default: the newest demo of this user)' };

const prometheusOptions = [
  { flags: '--prometheus <url>', help: 'Address of Prometheus, or of a server with its query API.' },
  { flags: '--token-file <file>', help: 'File with the bearer token for Prometheus.' },
  { flags: '--ca-file <file>', help: 'Certificates that sign that of Prometheus.' },
  { flags: '--cert-file <file>', help: 'Certificate of this client.' },
  { flags: '--key-file <file>', help: 'Key of the certificate.' },
  { flags: '--tenant <name>', help: 'Value of the header X-Scope-OrgID.' },
  { flags: '--group-label <label>', help: 'Label of kube_node_labels that groups the nodes. (default: label_topology_kubernetes_io_zone)' },
] as const;

const FLEET_NOTES = `It asks Prometheus for the series of deploy/rules.yaml and deploy/rules-fleet.yaml, and nothing else: docs/fleet.md.`;

const fleetCommand = (name: string, summary: string, load: CommandSpec['load']): CommandSpec => ({
  name: `fleet ${name}`,
  summary,
  formats: ['table', 'json'],
  options: prometheusOptions,
  notes: `${FLEET_NOTES}
The status is 1 when not everything was read.`,
  examples: [`device-agent fleet ${name} --prometheus=http://prometheus:9090`],
  load,
});

export const commands: readonly CommandSpec[] = [
  {
    name: 'serve',
    summary: 'Run the agent until SIGTERM or SIGINT. SIGHUP reads the configuration file again.',
    examples: ['device-agent serve', 'device-agent serve --refresh.interval=5s --no-probe.nvme --log.format=json'],
    load: async () => (await import('./serve/serve.ts')).runServe,
  },
  {
    name: 'list',
    knowsDemo: true,
    summary: 'Print the devices, their health and their holders.',
    formats: ['table', 'wide', 'json', 'yaml', 'prom'],
    options: [
      readOption,
      { flags: '-w, --watch', help: 'Ask or read again at each --refresh.interval, and print the table again when it changed.' },
      rowsOption,
    ],
    notes: `The command asks the running agent, and says on the standard error how old its data is. Without an agent it reads everything once.
-w and --by are for the tables. -w rewrites the table in place on a terminal, and appends it with a line of time elsewhere.
The table is one frame of "device-agent top". A narrow terminal lacks columns and cuts long cells; -o wide prints all facts, and cuts nothing.`,
    examples: ['device-agent list', 'device-agent list --by=pod -w', 'device-agent list -o prom | promtool check metrics'],
    readsDevices: ({ read, watch }) => read === true && watch !== true,
    load: async () => (await import('./list/list.ts')).runList,
  },
  {
    name: 'top',
    knowsDemo: true,
    summary: 'Fill the terminal with the devices, faulty ones first, and keep them up to date.',
    options: [
      rowsOption,
      { flags: '--sort <order>', help: 'Order of the rows.', choices: VIEW_SORTS },
      { flags: '--filter <text>', help: 'Only rows that contain this text, or match family:, state:, namespace: or holder:.' },
      { flags: '--no-color', help: 'No colours, as with NO_COLOR. The words also give the state.' },
    ],
    notes: `${ASKS}.
? shows the keys; docs/page.md explains the columns. Without a terminal, use "device-agent list -w".`,
    examples: ['device-agent top', 'device-agent top --by=pod --filter=state:unhealthy', 'kubectl exec -it POD -- device-agent top'],
    load: async () => (await import('./top/top.ts')).runTop,
  },
  {
    name: 'health',
    knowsDemo: true,
    summary: 'Report whether devices are healthy, like a node-problem-detector plugin: 0 no problem, 1 problem, 2 unknown.',
    formats: ['line', 'text', 'json'],
    isTextOnTerminal: true,
    options: [
      readOption,
      { flags: '--device <id>', help: 'Only this device, by name (GPU 0), id, alias, UUID or family/id.' },
      {
        flags: '--npd <condition>',
        help: 'Ask the agent, and never the hardware, for one condition of the node or one event, as a plugin of node-problem-detector.',
        choices: [...NODE_CONDITIONS, NODE_EVENT],
      },
    ],
    notes: `${ASKS}, because its verdicts have a history. Without an agent it reads
everything once. One reading shows less: the growth of a counter needs two readings, and a condition with a waiting time does not count yet.
The line has 80 bytes at most, because node-problem-detector cuts it there; -o text prints everything, and is the default on a terminal. --npd is for the rules in
deploy/node-problem-detector: 0 the condition does not hold, 1 it holds, 2 it is not known, also when no agent answers.
Wrong usage and errors also have status 2, because health is then unknown. Only unhealthy hardware has status 1.`,
    examples: [
      'device-agent health',
      'device-agent health --device=0000:3b:00.0',
      'device-agent health -o text',
      'device-agent health --npd DevicesMissing',
    ],
    readsDevices: ({ read }) => read === true,
    load: async () => (await import('./health/health.ts')).runHealth,
  },
  {
    name: 'health accept',
    knowsDemo: true,
    summary: 'End a condition that no reading can confirm any more, with a reason that is recorded.',
    argument: { name: 'device', help: 'Device, by name (GPU 0), id, alias, UUID or family/id.', isRequired: true },
    secondArgument: { name: 'condition', help: 'Condition, as Type or Type/instance. Default: all unverified conditions of the device.' },
    options: [{ flags: '--why <text>', help: 'Reason, for the events and the incident.' }],
    notes: `Only an unverified condition can be accepted: one that was seen, and that the agent cannot check now because its source is gone. The
next read that sees the fault raises it again. The command uses the socket control.sock beside --state.file, which only the user of the agent
can open.`,
    examples: [
      'device-agent health accept 0000:3b:00.0 RasUncorrectable/umc --why "card tested by the maker"',
      'device-agent health accept 0000:3b:00.0 --why "kernel log no longer mounted"',
    ],
    load: async () => (await import('./ask-control.ts')).runHealthAccept,
  },
  {
    name: 'release',
    summary: 'Close the driver of a family for a time, so that it can be reset, unloaded or upgraded.',
    argument: { name: 'family', help: 'Device family whose driver the agent keeps open.', isRequired: true },
    options: [
      { flags: '--for <duration>', help: 'How long, such as 10m; at most 24h. The agent then opens the driver again.' },
      { flags: '--end', help: 'Open the driver again now.' },
      { flags: '--why <text>', help: 'Reason, for the condition of the devices.' },
    ],
    notes: `The command returns when the agent has closed the driver. Until the end the devices are unknown, with the condition DriverReleased, and
the alert DeviceProbeFails is silent. A restart of the agent ends the release. The command uses the socket control.sock beside --state.file, which
only the user of the agent can open. POST /-/release?family=FAMILY&for=10m does the same where --web.enable-lifecycle is set.`,
    examples: ['device-agent release nvidia --for 10m --why "driver 590"', 'device-agent release nvidia --end'],
    load: async () => (await import('./ask-control.ts')).runRelease,
  },
  {
    name: 'incidents',
    knowsDemo: true,
    summary: 'List the incidents of the devices, or print one: what happened, who was hit, what to do, and the evidence.',
    formats: ['text', 'json'],
    argument: { name: 'id', help: 'Incident to print, as the list names it; or a device (GPU 0), of which the newest is printed.' },
    options: [
      readOption,
      { flags: '--by <group>', help: 'device: count the kept incidents of each device, most fatal ones first.' },
      { flags: '--pod <namespace/name>', help: 'List only the incidents that hit this pod, and nothing of other pods.' },
    ],
    notes: `${ASKS}. Without an agent it reads the directory incidents beside
--state.file. docs/incidents.md says what a record has and how long it is kept.
With --pod the list has the device, the change, the conditions, the remedies and the times of this pod: it can be given to whoever owns the pod.`,
    examples: [
      'device-agent incidents',
      'device-agent incidents --by device',
      'device-agent incidents "GPU 3"',
      'device-agent incidents 20261123-203015-nvme-0000-3b-00.0 -o json > incident.json',
      'device-agent incidents --pod training/finetune-0-0',
    ],
    load: async () => (await import('./incidents.ts')).runIncidents,
  },
  {
    name: 'explain',
    knowsDemo: true,
    summary:
      'Say how near the devices of a pod are to each other and to its CPUs, and whether they can transfer data directly, with reasons.',
    formats: ['text', 'json'],
    argument: {
      name: 'name',
      help: 'Pod to explain, as NAMESPACE/NAME, or NAME alone where one pod has it. Without it, the pods that hold devices are named.',
    },
    options: [readOption, { flags: '--pod <namespace/name>', help: 'The same, as a flag.' }],
    notes: `${ASKS}. Without an agent it reads everything once.
Each reason ends with the place where it was read. docs/locality.md explains the words. The status is 1 when the pod holds no device on this node.`,
    examples: ['device-agent explain training/finetune-0-0', 'device-agent explain training/finetune-0-0 -o json'],
    load: async () => (await import('./explain.ts')).runExplain,
  },
  {
    name: 'publish',
    summary: 'Write the verdicts of the running agent to the API server: conditions of the node, events, taints.',
    ownSection: { path: 'publish', load: async () => (await import('./publish/options.ts')).publishSection },
    options: [
      { flags: '--withdraw', help: 'Remove the conditions, the taint rules and the taint of this node, and end.' },
      { flags: '--dry-run', help: 'Print as YAML what it would write now, and end. It asks the agent, and no API server.' },
    ],
    notes: `A process of its own, which alone has a token; "serve" never talks to the API server. NODE_NAME is the name of the node.
It writes only what changed. On SIGTERM its conditions become Unknown; --withdraw removes them. docs/publish.md has the rights and failures.`,
    examples: [
      'device-agent publish',
      'device-agent publish --publish.device-taint-rules=NoSchedule',
      'device-agent publish --dry-run --publish.device-taint-rules=NoSchedule | kubectl apply -f -',
      'device-agent publish --withdraw',
    ],
    load: async () => (await import('./publish/publish.ts')).runPublish,
  },
  {
    name: 'kernel-log',
    summary: 'Read the kernel log for an agent that may not, and pass its records on by a socket.',
    options: [{ flags: '--socket <path>', help: 'Socket to make. Only the user of this command can open it.' }],
    notes: `A process of its own, which alone needs the right to read the log; give its socket to "serve" as --path.kmsg. It opens the log for each client,
passes the records on as they are, and takes nothing from a client but the wish for more. docs/security.md says who may connect.`,
    examples: ['device-agent kernel-log --socket=/run/device-agent/kernel-log.sock'],
    load: async () => (await import('./kernel-log.ts')).runKernelLog,
  },
  {
    name: 'usage',
    knowsDemo: true,
    summary: 'Report who used which devices for how long, and how long they stood idle. Most idle hours first.',
    formats: ['table', 'json', 'csv'],
    options: [
      readOption,
      { flags: '--since <duration>', help: 'Time up to now that the report covers, such as 24h or 7d. (default: 24h)' },
      {
        flags: '--by <group>',
        help: 'One of namespace, pod, device, resource, or label:NAME for a label of --usage.labels. (default: namespace)',
      },
      { flags: '--family <name>', help: 'Only devices of this family. (default: all)' },
    ],
    notes: `${ASKS}. Without an agent it reads the ledger beside --state.file.
Device hours count a device that several containers hold once: each container has its share. -o json and -o csv have seconds, joules and bytes.`,
    examples: ['device-agent usage', 'device-agent usage --since=7d --by=pod', 'device-agent usage --by=label:team -o csv'],
    load: async () => (await import('./usage/usage.ts')).runUsage,
  },
  {
    name: 'doctor',
    summary: 'Check sockets, permissions, drivers and sysfs; print each finding with cause and remedy.',
    formats: ['text', 'json'],
    options: [readOption],
    examples: ['device-agent doctor', 'device-agent doctor -o json | jq ".checks[] | select(.status == \\"finding\\")"'],
    readsDevices: () => true,
    load: async () => (await import('./doctor/doctor.ts')).runDoctor,
  },
  {
    name: 'demo',
    hasOwnFile: true,
    summary: 'Create a simulated node from files, programs and a kubelet, and run the agent on it.',
    ownSection: { path: 'sim', load: async () => (await import('./demo/section.ts')).demoSection },
    options: [{ flags: '--replay <file>', help: 'Show a captured node in place of the simulated one; docs/capture.md.' }],
    examples: [
      'device-agent demo',
      'device-agent demo --sim.devices=all=0,nvme=16 --sim.pods=100 --web.listen-address=:0',
      'device-agent demo --replay device-agent-capture.json.gz',
    ],
    load: async () => (await import('./demo/demo.ts')).runDemo,
  },
  {
    name: 'capture',
    summary: 'Read everything on this node twice, and write it into one archive, with all names replaced, for a replay on another machine.',
    options: [
      { flags: '-o, --output <file>', help: 'Archive to write; - is the standard output (default: device-agent-capture.json.gz).' },
      { flags: '--no-redact', help: 'Keep the names of pods and hosts, UUIDs and serial numbers.' },
    ],
    notes: `The command reads by itself, also beside a running agent, which keeps no bytes of its reads: about 100 MiB of memory and two sets of reads, one
--refresh.interval apart. docs/capture.md says what is in the archive and what is replaced.`,
    examples: [
      'device-agent capture',
      'device-agent capture -o node-7.json.gz --refresh.interval=1s',
      'kubectl exec POD -- device-agent capture -o - > node-7.json.gz',
    ],
    readsDevices: () => true,
    load: async () => (await import('./capture/capture.ts')).runCapture,
  },
  {
    name: 'replay',
    summary: 'Read a captured node and compare the metrics with those of the capture: 0 equal, 1 different.',
    formats: ['text', 'prom'],
    argument: { name: 'file', help: 'Archive of "device-agent capture".' },
    options: [{ flags: '--expect <page>', help: 'Metrics to expect after the second read (default: those in the archive).' }],
    notes: '-o prom prints the metrics of devices and containers after the second read. Times of the agent are not compared.',
    examples: ['device-agent replay node-7.json.gz', 'device-agent replay node-7.json.gz --expect page.prom'],
    load: async () => (await import('./replay/replay.ts')).runReplay,
  },
  {
    name: 'demo fleet',
    hasOwnFile: true,
    summary: 'Show 20 simulated nodes in one page, from a real Prometheus where one is installed.',
    examples: ['device-agent demo fleet'],
    load: async () => (await import('./demo/fleet.ts')).runDemoFleet,
  },
  {
    name: 'demo fault',
    hasOwnFile: true,
    summary: 'Begin a fault on a device of a running demo; without a name, list the faults, their devices and what runs now.',
    formats: ['text', 'json'],
    argument: { name: 'name', help: 'Fault to begin, as the list names it.' },
    secondArgument: {
      name: 'device',
      help: 'Device that gets it, by id, PCI address or family/id. A fault of all devices of a family needs none.',
    },
    options: [demoOption],
    notes: `Only files, programs and kernel log lines of the simulated node change, so the agent finds the fault as on real hardware.
The demo must run as the same user and with the same TMPDIR. Faults that the demo begins by itself end by themselves; --sim.story=off keeps
it from beginning any.`,
    examples: ['device-agent demo fault', 'device-agent demo fault hot 0008:01:00.0', 'device-agent demo fault clear'],
    load: async () => (await import('./demo/fault.ts')).runDemoFault,
  },
  {
    name: 'demo fault clear',
    hasOwnFile: true,
    summary: 'End the faults of a running demo: all of them, or those of one name or one device.',
    argument: { name: 'what', help: 'Fault or device.' },
    options: [demoOption],
    examples: ['device-agent demo fault clear', 'device-agent demo fault clear hot', 'device-agent demo fault clear 0008:01:00.0'],
    load: async () => (await import('./demo/fault.ts')).runDemoFaultClear,
  },
  {
    name: 'fleet',
    summary: 'Serve one page for all nodes, from the Prometheus that scrapes them.',
    options: [
      ...prometheusOptions,
      { flags: '--listen <address>', help: 'HOST:PORT of the page. (default: 127.0.0.1:9836)' },
      { flags: '--board <url>', help: 'Address of the board of a node, with {node} and {cluster}.' },
    ],
    notes: FLEET_NOTES,
    examples: ['device-agent fleet --prometheus=http://prometheus:9090'],
    load: async () => (await import('./fleet/fleet.ts')).runFleet,
  },
  fleetCommand('list', 'Print the nodes, worst first.', async () => (await import('./fleet/fleet.ts')).listFleet),
  fleetCommand(
    'top',
    'Print the devices of each model: held, free, out of service.',
    async () => (await import('./fleet/fleet.ts')).topFleet,
  ),
  fleetCommand('usage', 'Print what namespaces held and left idle in a day.', async () => (await import('./fleet/fleet.ts')).usageFleet),
  fleetCommand(
    'incidents',
    'Print the faults, those of one kind as one line.',
    async () => (await import('./fleet/fleet.ts')).incidentsFleet,
  ),
  {
    name: 'config check',
    summary: 'Check flags, environment and file; print nothing when everything is valid.',
    examples: ['device-agent config check --config.file=/etc/device-agent.yaml'],
    load: async () => (await import('./config.ts')).checkConfig,
  },
  {
    name: 'config print',
    summary: 'Print the effective values, each with its origin.',
    formats: ['yaml', 'table', 'json'],
    options: [readOption],
    notes: `Without flags the command prints what the running agent uses, by the socket beside --state.file. With flags or --read, or without an agent, it
prints what a start would use. The standard error says when the values are those of an agent.`,
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
    name: 'family check',
    summary: 'Check a declaration of a device family, and show what it finds on this node or in a captured tree.',
    argument: { name: 'file', help: 'YAML file with the declaration.', isRequired: true },
    formats: ['text', 'json'],
    options: [{ flags: '--root <directory>', help: 'Read this tree instead of the node: sys/, proc/, dev/, commands/<name>.txt.' }],
    notes: `The status is 0 when the declaration is valid and finds a device without problems, 1 when it finds none or has problems, and 2
when the declaration is not valid. With --root no program runs: the output of a command is read from commands/<name>.txt in the tree.`,
    examples: ['device-agent family check acme.yaml', 'device-agent family check acme.yaml --root=captured/node-1'],
    load: async () => (await import('./family/check.ts')).checkFamily,
  },
  {
    name: 'family list',
    summary: 'Print all device families: in code, shipped as declarations, and read from --family.dir.',
    formats: ['table', 'json'],
    examples: ['device-agent family list', 'device-agent family list --family.dir=./families'],
    load: async () => (await import('./family/check.ts')).listFamilies,
  },
  {
    name: 'family schema',
    summary: 'Print the JSON Schema of a declaration.',
    examples: ['device-agent family schema > family.schema.json'],
    load: async () => (await import('./family/check.ts')).printFamilySchema,
  },
  {
    name: 'version',
    summary: 'Print version and platform.',
    formats: ['text', 'json'],
    examples: ['device-agent version', 'device-agent version -o json'],
    load: async () => (await import('./version.ts')).printVersion,
  },
];

/** Descriptions of commands that only group other commands. */
export const commandGroups: Readonly<Record<string, string>> = {
  config: 'Check and show the configuration.',
  family: 'Check and show device families.',
};
