import { createHash } from 'node:crypto';
import type { Scenario, SimulatedHardware, SimulatedUse } from '../../family-simulation.ts';
import { pastOf } from '../../fault-past.ts';

const GIB = 1_073_741_824;

/** Numbers of the nodes begin high, because cards of other families have the low ones. */
const FIRST_CARD = 200;
const FIRST_RENDER = 328;
const FIRST_PID = 40_000;
/** Clock of the engines, in cycles per millisecond. */
const CYCLES_PER_MS = 19_200;
const RESOURCE = 'gpu.intel.com/xe';

/** Simulates Flex 170 cards on two NUMA nodes. */
export function simulate(scenario: Scenario): SimulatedHardware {
  const { counts, elapsedMs, use } = scenario;
  const cards = Array.from({ length: counts.intelgpu ?? 0 }, (_, index) => index);
  const files: Record<string, string> = {};
  const links: Record<string, string> = {};
  if (cards.length === 0) return { files, links, resources: [] };
  for (const index of cards) {
    addCard(index, scenario, files, links);
    addProcess(index, elapsedMs, use?.[idOf(index)], files, links);
  }
  files['proc/2/comm'] = 'kthreadd\n';
  return {
    files,
    links,
    resources: [{ resource: RESOURCE, deviceIds: cards.map(idOf), numaNodes: cards.map(numaNodeOf) }],
    targets: cards.map((index) => ({ id: addressOf(index), kind: 'gpu', names: [`card${FIRST_CARD + index}`] })),
    kernelLog: cards.map((index) => ({ atMs: 1, level: 6, text: loadedLine(index) })),
  };
}

const addressOf = (index: number): string => `0030:${(0x10 + index).toString(16).padStart(2, '0')}:00.0`;
const idOf = (index: number): string => `card${FIRST_CARD + index}-0`;
const numaNodeOf = (index: number): number => index % 2;

/** Line that the driver logs when it starts on a card. */
const loadedLine = (index: number): string => `[drm] Initialized xe 1.1.0 for ${addressOf(index)} on minor ${FIRST_CARD + index}`;

/** Time for which a card worked. A card whose pods are not known works half of the time. */
const activeMsOf = (index: number, elapsedMs: number, use: Scenario['use']): number =>
  use === undefined ? elapsedMs / 2 : (use[idOf(index)]?.activeMs ?? 0);

function addCard(index: number, scenario: Scenario, files: Record<string, string>, links: Record<string, string>): void {
  const { elapsedMs, use } = scenario;
  const address = addressOf(index);
  const root = `sys/devices/pci0030:00/0030:00:${((index % 31) + 1).toString(16).padStart(2, '0')}.0`;
  const directory = `${root}/${address}`;
  const activeMs = activeMsOf(index, elapsedMs, use);
  const isActive = use === undefined || use[idOf(index)]?.holder?.isIdle === false;
  const isHot = pastOf(scenario, 'hot', address).isOn;
  const monitor = `${directory}/hwmon/hwmon${60 + index}`;
  const gt = `${directory}/tile0/gt0`;
  const texts: Readonly<Record<string, string | number>> = {
    [`${directory}/vendor`]: '0x8086',
    [`${directory}/device`]: '0x56c0',
    [`${directory}/class`]: '0x038000',
    [`${directory}/numa_node`]: numaNodeOf(index),
    [`${directory}/power_state`]: 'D0',
    [`${directory}/power/runtime_status`]: 'active',
    [`${directory}/power/runtime_active_time`]: Math.round(elapsedMs),
    [`${directory}/aer_dev_correctable`]: 'RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0',
    [`${directory}/aer_dev_nonfatal`]: 'UnsupReq 0\nTOTAL_ERR_NONFATAL 0',
    [`${directory}/aer_dev_fatal`]: 'DLP 0\nTOTAL_ERR_FATAL 0',
    [`${directory}/tile0/physical_vram_size_bytes`]: 16 * GIB,
    [`${gt}/freq0/act_freq`]: isActive ? 2_050 : 0,
    [`${gt}/freq0/cur_freq`]: isActive ? 2_050 : 300,
    [`${gt}/freq0/min_freq`]: 300,
    [`${gt}/freq0/max_freq`]: 2_050,
    [`${gt}/freq0/rp0_freq`]: 2_050,
    [`${gt}/freq0/throttle/reasons`]: isHot ? 'thermal' : 'none',
    [`${gt}/freq0/throttle/reason_pl1`]: 0,
    [`${gt}/freq0/throttle/reason_thermal`]: isHot ? '0x100' : 0,
    [`${gt}/gtidle/name`]: 'gt0-rc',
    [`${gt}/gtidle/idle_residency_ms`]: Math.max(Math.round(elapsedMs - activeMs), 0),
    ...Object.fromEntries(['rcs', 'bcs', 'vcs', 'vecs', 'ccs'].map((name) => [`${gt}/engines/${name}/job_timeout_ms`, 5_000])),
    [`${monitor}/name`]: 'xe',
    [`${monitor}/energy1_label`]: 'card',
    [`${monitor}/energy1_input`]: Math.round(1_000 * (1_000_000 + 40 * elapsedMs + 90 * activeMs)),
    [`${monitor}/energy2_label`]: 'pkg',
    [`${monitor}/energy2_input`]: Math.round(1_000 * (1_000_000 + 25 * elapsedMs + 80 * activeMs)),
    [`${monitor}/power1_label`]: 'card',
    [`${monitor}/power1_max`]: 150_000_000,
    [`${monitor}/temp2_label`]: 'pkg',
    [`${monitor}/temp2_input`]: isHot ? 101_000 : isActive ? 68_000 : 42_000,
    [`${monitor}/temp2_crit`]: 100_000,
    [`${monitor}/temp2_emergency`]: 105_000,
    [`${monitor}/temp3_label`]: 'vram',
    [`${monitor}/temp3_input`]: isActive ? 70_000 : 46_000,
    [`${monitor}/temp3_crit`]: 105_000,
    [`${monitor}/fan1_input`]: 0,
    [`${monitor}/in1_label`]: 'pkg',
    [`${monitor}/in1_input`]: isActive ? 880 : 605,
  };
  for (const [path, text] of Object.entries(texts)) files[path] = `${text}\n`;
  for (const where of [directory, root]) {
    files[`${where}/max_link_speed`] = '16.0 GT/s PCIe\n';
    files[`${where}/max_link_width`] = '16\n';
  }
  files[`${directory}/current_link_speed`] = '16.0 GT/s PCIe\n';
  files[`${directory}/current_link_width`] = '16\n';
  links[`sys/bus/pci/devices/${address}`] = `../../../${directory.slice('sys/'.length)}`;
  links[`sys/bus/pci/drivers/xe/${address}`] = `../../../../${directory.slice('sys/'.length)}`;
  links[`${directory}/driver`] = '../../../../bus/pci/drivers/xe';
  for (const [node, minor] of [
    [`card${FIRST_CARD + index}`, FIRST_CARD + index],
    [`renderD${FIRST_RENDER + index}`, FIRST_RENDER + index],
  ] as const) {
    links[`sys/class/drm/${node}`] = `../../${directory.slice('sys/'.length)}/drm/${node}`;
    links[`${directory}/drm/${node}/device`] = '../..';
    files[`${directory}/drm/${node}/dev`] = `226:${minor}\n`;
    files[`dev/dri/${node}`] = '';
  }
}

/** The process of the pod that holds a card. When no pod does, its files show no use. */
function addProcess(
  index: number,
  elapsedMs: number,
  use: SimulatedUse | undefined,
  files: Record<string, string>,
  links: Record<string, string>,
): void {
  if (use === undefined) return;
  const { activeMs, holder } = use;
  const process = `proc/${FIRST_PID + index}`;
  links[`${process}/fd/5`] = holder === undefined ? '/dev/null' : `/dev/dri/renderD${FIRST_RENDER + index}`;
  if (holder === undefined) return;
  const id = createHash('sha256').update(holder.podUid).digest('hex');
  const cycles = (ms: number): number => Math.round(CYCLES_PER_MS * ms);
  files[`${process}/comm`] = `${holder.program}\n`;
  // The start time, field 22, distinguishes the process from the one of the pod before.
  const fields = Array.from({ length: 18 }, () => '0').join(' ');
  files[`${process}/stat`] = `${FIRST_PID + index} (${holder.program}) S ${fields} ${Number.parseInt(id.slice(0, 8), 16)} 0 0\n`;
  files[`${process}/cgroup`] = `0::/kubepods.slice/kubepods-pod${holder.podUid.replaceAll('-', '_')}.slice/cri-containerd-${id}.scope\n`;
  files[`${process}/fdinfo/5`] = [
    'drm-driver:\txe',
    `drm-client-id:\t${Number.parseInt(id.slice(0, 6), 16)}`,
    `drm-pdev:\t${addressOf(index)}`,
    `drm-total-vram0:\t${6 * 1_024} MiB`,
    `drm-resident-vram0:\t${6 * 1_024} MiB`,
    `drm-cycles-ccs:\t${cycles(0.9 * activeMs)}`,
    `drm-total-cycles-ccs:\t${cycles(elapsedMs)}`,
    `drm-cycles-rcs:\t0`,
    `drm-total-cycles-rcs:\t${cycles(elapsedMs)}`,
    '',
  ].join('\n');
}
