import { createHash } from 'node:crypto';
import type { Scenario, SimulatedHardware, SimulatedHolder } from '../../family-simulation.ts';
import { pastOf } from '../../fault-past.ts';

const GIB = 1_073_741_824;

/** Simulates MI210 cards on two NUMA nodes, joined in pairs. */
export function simulate(scenario: Scenario): SimulatedHardware {
  const { counts, elapsedMs, use } = scenario;
  const count = counts.amdgpu ?? 0;
  const files: Record<string, string> = {};
  const links: Record<string, string> = {};
  const cards = Array.from({ length: count }, (_, index) => index);
  for (const index of cards) {
    const holder = use?.[addressOf(index)]?.holder;
    const isWorking = use === undefined || holder?.isIdle === false;
    addCard(index, isWorking ? loadOf(index, elapsedMs) : 0, scenario, files, links);
    if (use !== undefined) addProcess(index, holder, files);
  }
  if (count > 0) addTopology(cards, files);
  const resources = count === 0 ? [] : [{ resource: 'amd.com/gpu', deviceIds: cards.map(addressOf), numaNodes: cards.map(numaNodeOf) }];
  const targets = cards.map((index) => ({ id: addressOf(index), kind: 'gpu' }));
  return { files, links, resources, ...(count > 0 && { targets }) };
}

const hex = (value: number): string => value.toString(16).padStart(2, '0');
const busOf = (index: number): number => 0x10 + index;
const addressOf = (index: number): string => `0020:${hex(busOf(index))}:00.0`;
const numaNodeOf = (index: number): number => index % 2;
const gpuIdOf = (index: number): number => 10_000 + index;
const renderOf = (index: number): number => 128 + index;

/** Share of the time that the card works, 0 to 1: a slow wave, different for each card. */
const loadOf = (index: number, elapsedMs: number): number => 0.5 + 0.4 * Math.sin(elapsedMs / 30_000 + index);

function addCard(index: number, load: number, scenario: Scenario, files: Record<string, string>, links: Record<string, string>): void {
  const address = addressOf(index);
  const root = `sys/devices/pci0020:00/0020:00:${hex((index % 31) + 1)}.0`;
  const directory = `${root}/${address}`;
  const isFaulty = pastOf(scenario, 'ras', address).isOn;
  const junction = pastOf(scenario, 'hot', address).isOn ? 101_000 : Math.round(40_000 + 40_000 * load);
  const monitor = `${directory}/hwmon/hwmon${40 + index}`;
  const texts: Readonly<Record<string, string | number>> = {
    [`${directory}/vendor`]: '0x1002',
    [`${directory}/device`]: '0x740f',
    [`${directory}/class`]: '0x038000',
    [`${directory}/numa_node`]: numaNodeOf(index),
    [`${directory}/power_state`]: 'D0',
    [`${directory}/power/runtime_status`]: 'active',
    [`${directory}/unique_id`]: uniqueIdOf(index).toString(16).padStart(16, '0'),
    [`${directory}/vbios_version`]: '113-D67301-059',
    [`${directory}/gpu_busy_percent`]: Math.round(100 * load),
    [`${directory}/mem_busy_percent`]: Math.round(60 * load),
    [`${directory}/mem_info_vram_total`]: 64 * GIB,
    [`${directory}/mem_info_vram_used`]: Math.round(60 * GIB * load),
    [`${directory}/mem_info_gtt_total`]: 256 * GIB,
    [`${directory}/mem_info_gtt_used`]: 16_777_216,
    [`${directory}/mem_info_vram_vendor`]: 'hynix',
    [`${directory}/pcie_replay_count`]: 0,
    [`${directory}/ras/event_state`]: eventState(0),
    [`${directory}/ras/umc_err_count`]: `ue: ${isFaulty ? 1 : 0}\nce: 0\nde: 0`,
    [`${directory}/ras/gfx_err_count`]: 'ue: 0\nce: 0',
    [`${directory}/ras/gpu_vram_bad_pages`]: '',
    [`${directory}/aer_dev_correctable`]: 'RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0',
    [`${directory}/aer_dev_nonfatal`]: 'UnsupReq 0\nTOTAL_ERR_NONFATAL 0',
    [`${directory}/aer_dev_fatal`]: 'DLP 0\nTOTAL_ERR_FATAL 0',
    [`${root}/vendor`]: '0x1022',
    [`${monitor}/name`]: 'amdgpu',
    [`${monitor}/temp1_label`]: 'edge',
    [`${monitor}/temp1_input`]: Math.round(35_000 + 30_000 * load),
    [`${monitor}/temp2_label`]: 'junction',
    [`${monitor}/temp2_input`]: junction,
    [`${monitor}/temp2_crit`]: 100_000,
    [`${monitor}/temp2_emergency`]: 105_000,
    [`${monitor}/temp3_label`]: 'mem',
    [`${monitor}/temp3_input`]: Math.round(40_000 + 30_000 * load),
    [`${monitor}/temp3_crit`]: 96_000,
    [`${monitor}/power1_label`]: 'PPT',
    [`${monitor}/power1_average`]: Math.round(1e6 * (45 + 255 * load)),
    [`${monitor}/power1_cap`]: 300_000_000,
    [`${monitor}/freq1_label`]: 'sclk',
    [`${monitor}/freq1_input`]: Math.round(1e6 * (500 + 1_200 * load)),
    [`${monitor}/freq2_label`]: 'mclk',
    [`${monitor}/freq2_input`]: 1_600_000_000,
  };
  for (const [path, text] of Object.entries(texts)) files[path] = `${text}\n`;
  for (const end of ['device', 'upstream'] as const) {
    const where = end === 'device' ? directory : root;
    files[`${where}/max_link_speed`] = '16.0 GT/s PCIe\n';
    files[`${where}/max_link_width`] = '16\n';
  }
  files[`${directory}/current_link_speed`] = '16.0 GT/s PCIe\n';
  files[`${directory}/current_link_width`] = '16\n';
  links[`sys/bus/pci/devices/${address}`] = `../../../${directory.slice('sys/'.length)}`;
  links[`${directory}/driver`] = '../../../../bus/pci/drivers/amdgpu';
  for (const node of [`card${index}`, `renderD${renderOf(index)}`]) {
    links[`sys/class/drm/${node}`] = `../../${directory.slice('sys/'.length)}/drm/${node}`;
    links[`${directory}/drm/${node}/device`] = '../..';
    files[`${directory}/drm/${node}/dev`] = `226:${node.startsWith('card') ? index : renderOf(index)}\n`;
    files[`dev/dri/${node}`] = '';
  }
  if (index === 0) files['dev/kfd'] = '';
}

/** Memory of a process that does nothing. */
const IDLE_BYTES = 536_870_912;

/** The process of a holder, as KFD and the kernel show it. Without one, its file shows no use. */
function addProcess(index: number, holder: SimulatedHolder | undefined, files: Record<string, string>): void {
  const pid = 60_000 + index;
  files[`sys/class/kfd/kfd/proc/${pid}/vram_${gpuIdOf(index)}`] = `${holder === undefined ? 0 : holder.isIdle ? IDLE_BYTES : 16 * GIB}\n`;
  if (holder === undefined) return;
  const { podUid, program } = holder;
  const id = createHash('sha256').update(podUid).digest('hex');
  files[`proc/${pid}/stat`] =
    `${pid} (${program}) S 1 ${pid} ${pid} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${Number.parseInt(id.slice(0, 8), 16)} 0 0\n`;
  files[`proc/${pid}/cgroup`] = `0::/kubepods.slice/kubepods-pod${podUid.replaceAll('-', '_')}.slice/cri-containerd-${id}.scope\n`;
}

/** Text of `event_state` with this number of fatal errors. */
export const eventState = (fatal: number): string =>
  [
    `current seqno: ${fatal}`,
    `Fatal Error: count:${fatal}, last_seqno:${fatal}`,
    'Poison Creation: count:0, last_seqno:0',
    'Poison Consumption: count:0, last_seqno:0',
  ].join('\n');

const uniqueIdOf = (index: number): bigint => 0x1802_0d5c_a3f4_0000n + BigInt(index);

function addTopology(cards: readonly number[], files: Record<string, string>): void {
  const topology = 'sys/class/kfd/kfd/topology';
  files[`${topology}/generation_id`] = '1\n';
  files[`${topology}/nodes/0/gpu_id`] = '0\n';
  files[`${topology}/nodes/0/properties`] = 'cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\n';
  for (const index of cards) {
    const node = `${topology}/nodes/${index + 1}`;
    const pair = index % 2 === 0 ? index + 1 : index - 1;
    files[`${node}/gpu_id`] = `${gpuIdOf(index)}\n`;
    files[`${node}/properties`] = [
      'cpu_cores_count 0',
      'simd_count 416',
      'gfx_target_version 90010',
      `location_id ${busOf(index) << 8}`,
      `domain ${0x20}`,
      `drm_render_minor ${renderOf(index)}`,
      `unique_id ${uniqueIdOf(index)}`,
      // What an MI210 has: the driver handles errors of memory and engines.
      'capability 746037888',
      'num_xcc 1',
      '',
    ].join('\n');
    if (pair < cards.length) files[`${node}/io_links/0/properties`] = `type 11\nnode_from ${index + 1}\nnode_to ${pair + 1}\n`;
  }
}
