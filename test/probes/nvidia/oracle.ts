import { dirname } from 'node:path';
import { family } from '../../../src/probes/nvidia/index.ts';
import type { Blinding, Fault, OracleFamily } from '../../oracle/family.ts';
import { hardwareOf } from '../../support/hardware.ts';

const GPUS = 4;
/** The last simulated GPU is split, and is not in the machine. */
const { files: simulated, links: allLinks, resources } = hardwareOf(family, { nvidia: GPUS + 1 }, 30_000);
const isOfLast = (path: string): boolean => path.includes(`0008:${(GPUS + 1).toString(16).padStart(2, '0')}:00.0`);
const links = Object.fromEntries(Object.entries(allLinks).filter(([path]) => !isOfLast(path)));

const SMI = 'bin/nvidia-smi';
const RELEASE = 'run/release';
const XML = 'bin/nvidia-smi.xml';
/** The part of the document on the clique of a GPU. */
const CLIQUE = `${XML}: clique`;
/** Which GPUs the document has. */
const GPU_LIST = `${XML}: GPUs`;
const LOG = 'dev/kmsg';
const uuids = resources.find(({ resource }) => resource === 'nvidia.com/gpu')?.deviceIds ?? [];
const addresses = uuids.map((_, at) => `0008:${(at + 1).toString(16).padStart(2, '0')}:00.0`);
/** The third GPU tells the UUID of the second one, so it is called by its address. */
const [REPLACED, FIRST, COPIED, FOURTH] = uuids as [string, string, string, string];
const COPY = addresses[2] as string;
const DEVICES = [REPLACED, FIRST, COPY, FOURTH];
const CLUSTER = '5e1f0000-0000-4000-9000-0000000000c1';
/** All GPUs are in one clique of a domain of several nodes. */
const ofDomain = (document: string): string =>
  document
    .replace(/\t<gpu id=(?![\s\S]*\t<gpu id=)[\s\S]*<\/gpu>\n/, '')
    .replace(/(?<=<attached_gpus>)\d+/, `${GPUS}`)
    .replaceAll(COPIED, FIRST)
    .replaceAll('<fabric>\n', `<fabric>\n\t\t\t<cliqueId>1</cliqueId>\n\t\t\t<clusterUuid>${CLUSTER}</clusterUuid>\n`);
const addressOf = (device: string): string => addresses[DEVICES.indexOf(device)] as string;
/** What the kernel driver tells of a GPU. */
const informationOf = (device: string): string => `proc/driver/nvidia/gpus/${addressOf(device)}/information`;
const information = (uuid: string): string => `Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t ${uuid}\nGPU Excluded:\t No\n`;
const files: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(simulated).filter(([path]) => !isOfLast(path))),
  ...Object.fromEntries(DEVICES.map((device) => [informationOf(device), information(device === COPY ? FIRST : device)])),
  [XML]: ofDomain(simulated[XML] as string),
};
const aerPathOf = (uuid: string): string => Object.keys(files).find((path) => path.endsWith(`/${addressOf(uuid)}/aer_dev_fatal`)) ?? '';

/** Changes the part of the document on one GPU. */
function changeGpu(device: string, change: (part: string) => string): (document: string) => string {
  return (document) =>
    document
      .split(/(?=\t<gpu id=)|(?<=\t<\/gpu>\n)/)
      .map((part) => (part.startsWith(`\t<gpu id="0000${addressOf(device)}"`) ? change(part) : part))
      .join('');
}

const setElement = (device: string, element: string, text: string): ((document: string) => string) =>
  changeGpu(device, (part) => part.replace(new RegExp(`<${element}>[^<]*</${element}>`), `<${element}>${text}</${element}>`));

function inDocument(name: string, condition: string, element: string, text: string): Fault {
  return {
    name,
    condition,
    shownBy: () => [XML],
    begin: (tree, uuid, layer) => tree.edit(layer, XML, setElement(uuid, element, text)),
    end: (tree, _uuid, layer) => tree.take(layer),
  };
}

/** The cliques of the GPUs are compared with each other. */
const inFabric = (name: string, element: string, text: string): Fault => ({
  ...inDocument(name, 'FabricCliqueDiffers', element, text),
  isCompared: true,
  shownBy: () => [CLIQUE],
});

const everything = (uuid: string): readonly string[] => [XML, CLIQUE, GPU_LIST, aerPathOf(uuid)];

const uuidOf = (count: number): string => `GPU-5e1f0000-0000-4000-9000-${String(count).padStart(12, '0')}`;

let lines = 0;

/** The driver does not show a GPU. `line`: what the command prints in front of its document. */
const unshown = (name: string, condition: string, line = '', more: Partial<Fault> = {}): Fault => ({
  name,
  condition,
  devices: [REPLACED, FOURTH],
  group: 'unshown',
  shownBy: () => [GPU_LIST],
  hides: everything,
  begin: (tree, device, layer) =>
    tree.edit(layer, XML, (document) => `${line.replace('ADDRESS', addressOf(device))}${withoutGpu(device)(document)}`),
  end: (tree, _device, layer) => tree.take(layer),
  ...more,
});

const withoutGpu =
  (device: string) =>
  (document: string): string =>
    changeGpu(device, () => '')(document).replace(/(?<=<attached_gpus>)\d+/, (count) => `${Number(count) - 1}`);

const faults: readonly Fault[] = [
  inDocument('row remapping failed', 'RowRemapFailure', 'remapped_row_failure', 'Yes'),
  inDocument('row remapping is pending', 'RowRemapPending', 'remapped_row_pending', 'Yes'),
  { ...inDocument('the driver asks for a reset', 'RecoveryAction', 'gpu_recovery_action', 'Reset'), group: 'recovery' },
  inDocument('uncorrectable errors', 'UncorrectableEcc', 'dram_uncorrectable', '2'),
  { ...inDocument('slowed down by heat', 'ThermalSlowdown', 'clocks_event_reason_hw_thermal_slowdown', 'Active'), group: 'slowdown' },
  { ...inDocument('slowed down', 'HardwareSlowdown', 'clocks_event_reason_hw_slowdown', 'Active'), group: 'slowdown' },
  inDocument('the fabric is sick', 'FabricUnhealthy', 'summary', 'Unhealthy'),
  inFabric('in another clique', 'cliqueId', '2'),
  inFabric('in another domain', 'clusterUuid', '5e1f0000-0000-4000-9000-0000000000c2'),
  {
    // The driver logs the error and requests a reset. The recovery action "none" ends both.
    name: 'fallen off the bus',
    condition: 'Xid',
    alsoRaises: ['RecoveryAction'],
    group: 'recovery',
    shownBy: () => [LOG],
    endShownBy: () => [XML],
    paceMs: 20_000,
    begin(tree, uuid, layer) {
      lines += 1;
      const line = `3,${1_000 + lines},${60_000_000 + lines},-;NVRM: Xid (PCI:${addressOf(uuid).slice(0, -2)}): 79, pid=1, GPU has fallen off the bus. (${lines})\n`;
      tree.write(LOG, (text) => `${text}${line}`);
      tree.edit(layer, XML, setElement(uuid, 'gpu_recovery_action', 'Reset'));
    },
    end: (tree, _uuid, layer) => tree.take(layer),
  },
  unshown('lost behind a line without a blank', 'GpuLost', 'Unable to determine the device handle for GPUADDRESS: Unknown Error\n'),
  unshown('not shown, without a word', 'NotInitialized'),
  unshown('never started', 'NotInitialized', '', {
    begin(tree, device, layer) {
      tree.edit(layer, XML, withoutGpu(device));
      tree.edit(layer, informationOf(device), (text) => text.replace(/GPU-\S+/, 'GPU-????????-????-????-????-????????????'));
    },
  }),
  {
    name: 'fatal PCIe error',
    condition: 'AerFatal',
    recovery: 'never',
    isFromPast: true,
    paceMs: 40_000,
    shownBy: (uuid) => [XML, CLIQUE, aerPathOf(uuid)],
    begin: (tree, uuid, layer) => tree.put(layer, aerPathOf(uuid), 'MalfTLP 1\nTOTAL_ERR_FATAL 1\n'),
  },
];

/** Replacements of the command. */
function command(name: string, text: string, more: Partial<Blinding> = {}): Blinding {
  return {
    name,
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ [SMI]: { kind: 'text', text: `#!/bin/sh\n${text}\n` } }),
    ...more,
  };
}

const printing =
  (change: (document: string) => string): Blinding['covers'] =>
  () => ({ [XML]: { kind: 'change', change } });

const blindings: readonly Blinding[] = [
  command('nvidia-smi hangs', 'exec sleep 1000'),
  command('nvidia-smi prints nothing', 'exit 0'),
  command('nvidia-smi fails', 'echo "Failed to initialize NVML: Unknown Error"; exit 255'),
  command('nvidia-smi prints garbage', 'echo "<nvidia_smi_log><gpu>"'),
  command('nvidia-smi is cut off', 'sed /^Unable/d "$(dirname "$0")/nvidia-smi.xml" | head -c 4000'),
  command('nvidia-smi is killed', 'kill -9 $$'),
  { ...command('somebody asked for the driver', ''), covers: (_tree, _uuid) => ({ [RELEASE]: { kind: 'text', text: '' } }) },
  { ...command('nvidia-smi is gone', ''), covers: (_tree, _uuid) => ({ [SMI]: { kind: 'absent' } }) },
  { ...command('nvidia-smi is a directory', ''), covers: (_tree, _uuid) => ({ [SMI]: { kind: 'directory' } }) },
  {
    ...command('the document announces more GPUs than it shows', ''),
    covers: printing((document) => document.replace(/^Unable.*\n/gm, '').replace(/\t<gpu id=[\s\S]*<\/gpu>\n/, '')),
  },
  {
    name: 'values are unknown errors',
    scope: 'family',
    leaves: 'read',
    hides: () => [XML, CLIQUE],
    covers: printing((document) =>
      document.replaceAll(
        /<(remapped_row_\w+|dram_\w+|sram_\w+|gpu_recovery_action|clocks_event_reason_\w+|summary|cliqueId|clusterUuid)>[^<]*</g,
        (_all, name) => `<${name}>[Unknown Error]<`,
      ),
    ),
  },
  {
    name: 'values are not there',
    scope: 'family',
    leaves: 'read',
    hides: () => [XML, CLIQUE],
    covers: printing((document) =>
      document.replaceAll(
        /\t\t<(remapped_row_\w+|dram_\w+|sram_\w+|gpu_recovery_action|clocks_event_reason_\w+|summary|cliqueId|clusterUuid)>[^<]*<\/\1>\n/g,
        (_all, name) => (name === 'gpu_recovery_action' ? '\t\t<gpu_recovery_action>N/A</gpu_recovery_action>\n' : ''),
      ),
    ),
  },
  {
    name: 'the clique of one GPU is not told',
    scope: 'device',
    leaves: 'read',
    hides: () => [CLIQUE],
    covers: () => ({}),
    begin: (tree, device, layer) =>
      tree.edit(
        layer,
        XML,
        changeGpu(device, (part) => part.replace(/<cliqueId>.*\n/, '')),
      ),
  },
  {
    name: 'the kernel log is closed',
    scope: 'family',
    leaves: 'read',
    hides: () => [LOG],
    covers: (_tree, _uuid) => ({ [LOG]: { kind: 'directory' } }),
  },
  {
    name: 'the kernel log is gone',
    scope: 'family',
    leaves: 'read',
    hides: () => [LOG],
    covers: (_tree, _uuid) => ({ [LOG]: { kind: 'absent' } }),
  },
  {
    name: 'PCIe errors hang',
    paceMs: 40_000,
    scope: 'device',
    leaves: 'unread',
    hangs: true,
    hides: everything,
    // The device counts as unread, but the command still reports whether it needs a reset.
    mayShow: () => [XML, CLIQUE, GPU_LIST],
    covers: (_tree, uuid) => ({ [aerPathOf(uuid)]: { kind: 'hang' } }),
  },
  {
    name: 'there is no sysfs',
    scope: 'family',
    leaves: 'read',
    hides: (uuid) => [aerPathOf(uuid)],
    covers: (_tree, _uuid) => ({ sys: { kind: 'absent' } }),
  },
];

export const oracle: OracleFamily = {
  family,
  options: { 'smi-path': '{root}/bin/nvidia-smi', 'release-file': `{root}/${RELEASE}` },
  machine: () => ({ files, links }),
  devices: DEVICES.map((id) => ({ id, deviceId: id })),
  placeOf: addressOf,
  faults,
  blindings,
  replacements: [
    {
      devices: [REPLACED],
      directory: dirname(aerPathOf(REPLACED)),
      toldIn: XML,
      begin(tree, count) {
        tree.write(XML, setElement(REPLACED, 'uuid', uuidOf(count)));
        tree.write(informationOf(REPLACED), () => information(uuidOf(count)));
      },
      names: (count) => ({ [REPLACED]: uuidOf(count) }),
    },
  ],
  duplicates: [
    {
      first: [FIRST],
      second: [COPY],
      isIdentity: true,
      listedIn: XML,
      problem: 'same-identity',
      leave(tree, [device = ''], layer) {
        tree.edit(layer, XML, withoutGpu(device));
        tree.remove(layer, `sys/bus/pci/devices/${addressOf(device)}`);
        tree.hide(layer, dirname(informationOf(device)), { kind: 'absent' });
      },
    },
  ],
  counter: {
    metric: 'device_pcie_replays_total',
    scale: 1,
    devices: DEVICES,
    path: () => XML,
    move: (tree, device, by) =>
      tree.write(
        XML,
        changeGpu(device, (part) => part.replace(/(?<=<replay_counter>)\d+/, (before) => `${Number(before) + by}`)),
      ),
  },
};
