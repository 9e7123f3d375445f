import type { Scenario, SimulatedHardware } from '../../family-simulation.ts';
import { pastOf } from '../../fault-past.ts';

const RESOURCE = 'device-agent.dev/nvme';
const SECTORS = 7_501_476_528;
/** Sectors that a busy drive reads and writes in a millisecond: 1 GB/s and 0.5 GB/s. */
const [READ, WRITTEN] = [2_000, 1_000];

/** Simulates drives of 3.84 TB with one namespace each on two NUMA nodes. */
export function simulate(scenario: Scenario): SimulatedHardware {
  const { counts, elapsedMs, use } = scenario;
  const files: Record<string, string> = {};
  const links: Record<string, string> = {};
  const drives = Array.from({ length: counts.nvme ?? 0 }, (_, index) => index);
  const ids = drives.map(idOf);
  for (const index of drives) addDrive(index, scenario, use === undefined ? elapsedMs : (use[idOf(index)]?.activeMs ?? 0), files, links);
  if (drives.length === 0) return { files, links, resources: [] };
  const resources = [{ resource: RESOURCE, deviceIds: ids, numaNodes: drives.map((index) => index % 2) }];
  const targets = drives.map((index) => ({ id: addressOf(index), kind: 'controller', names: [`nvme${index}`] }));
  // The faults of a demo are shorter than the usual time between two reads of a drive.
  const options = { 'smart-directory': '{root}/dev/nvme-smart' };
  return { files, links, resources, targets, options };
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
const addressOf = (index: number): string => `0050:${hex(0x10 + index, 2)}:00.0`;
const idOf = (index: number): string => `eui.36524e5a${hex(index, 8)}0025384500000001`;
const serialOf = (index: number): string => `S64FNE0R${String(100_000 + index)}`;

function addDrive(index: number, scenario: Scenario, activeMs: number, files: Record<string, string>, links: Record<string, string>): void {
  const address = addressOf(index);
  const root = `sys/devices/pci0050:00/0050:00:${hex((index >> 3) % 32, 2)}.${index % 8}`;
  const directory = `${root}/${address}`;
  const controller = `${directory}/nvme/nvme${index}`;
  const disk = `${controller}/nvme${index}n1`;
  const isHot = pastOf(scenario, 'hot', address).isOn;
  const kelvin = isHot ? 356 : 310 + (index % 8);
  const active = Math.floor(activeMs);
  const texts: Readonly<Record<string, string | number>> = {
    [`${directory}/vendor`]: '0x144d',
    [`${directory}/device`]: '0xa824',
    [`${directory}/class`]: '0x010802',
    [`${directory}/numa_node`]: index % 2,
    [`${directory}/power_state`]: 'D0',
    [`${directory}/power/runtime_status`]: 'active',
    [`${directory}/aer_dev_correctable`]: 'RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0',
    [`${directory}/aer_dev_nonfatal`]: 'UnsupReq 0\nTOTAL_ERR_NONFATAL 0',
    [`${directory}/aer_dev_fatal`]: 'DLP 0\nTOTAL_ERR_FATAL 0',
    [`${directory}/current_link_speed`]: '16.0 GT/s PCIe',
    [`${directory}/current_link_width`]: 4,
    [`${controller}/state`]: 'live',
    [`${controller}/transport`]: 'pcie',
    [`${controller}/address`]: address,
    [`${controller}/cntrltype`]: 'io',
    [`${controller}/cntlid`]: 6,
    [`${controller}/dev`]: `241:${index}`,
    [`${controller}/queue_count`]: 65,
    [`${controller}/model`]: 'SAMSUNG MZQL23T8HCLS-00A07              ',
    [`${controller}/serial`]: `${serialOf(index)}      `,
    [`${controller}/firmware_rev`]: 'GDC5602Q',
    [`${controller}/subsysnqn`]: `nqn.1994-11.com.samsung:nvme:PM9A3:2.5-inch:${serialOf(index)}`,
    [`${controller}/hwmon${20 + index}/name`]: 'nvme',
    [`${controller}/hwmon${20 + index}/temp1_label`]: 'Composite',
    [`${controller}/hwmon${20 + index}/temp1_input`]: kelvin * 1_000 - 273_150,
    [`${controller}/hwmon${20 + index}/temp1_crit`]: 84_850,
    [`${controller}/hwmon${20 + index}/temp1_alarm`]: isHot ? 1 : 0,
    [`${disk}/wwid`]: idOf(index),
    [`${disk}/nsid`]: 1,
    [`${disk}/size`]: SECTORS,
    [`${disk}/ro`]: 0,
    [`${disk}/stat`]: `${active * 16} 0 ${active * READ} ${active * 2} ${active * 8} 0 ${active * WRITTEN} ${active} 0 ${active} ${active * 3}`,
    [`dev/nvme-smart/${serialOf(index)}.json`]: smartJson(active, index, kelvin, isHot, scenario.elapsedMs),
  };
  for (const [path, text] of Object.entries(texts)) files[path] = `${text}\n`;
  for (const where of [directory, root]) {
    files[`${where}/max_link_speed`] = '16.0 GT/s PCIe\n';
    files[`${where}/max_link_width`] = '4\n';
  }
  for (const node of [`nvme${index}`, `nvme${index}n1`]) files[`dev/${node}`] = '';
  links[`sys/bus/pci/devices/${address}`] = `../../../${directory.slice('sys/'.length)}`;
  links[`${directory}/driver`] = '../../../../bus/pci/drivers/nvme';
  links[`${controller}/device`] = '../..';
  links[`sys/class/nvme/nvme${index}`] = `../../${controller.slice('sys/'.length)}`;
  links[`sys/class/block/nvme${index}n1`] = `../../${disk.slice('sys/'.length)}`;
}

function smartJson(activeMs: number, index: number, kelvin: number, isHot: boolean, elapsedMs: number): string {
  // A data unit is 1000 sectors.
  const units = (sectorsPerMs: number): number => Math.floor((activeMs * sectorsPerMs) / 1_000);
  return JSON.stringify({
    critical_warning: isHot ? 2 : 0,
    temperature: kelvin,
    avail_spare: 100,
    spare_thresh: 10,
    percent_used: 2 + index,
    data_units_read: 9_898_518 + units(READ),
    data_units_written: 136_157_684 + units(WRITTEN),
    host_read_commands: 313_528_805 + activeMs * 16,
    host_write_commands: 1_928_062_610 + activeMs * 8,
    // In minutes. It also makes the file a new one each minute: a file that nothing writes for half an hour counts as old.
    controller_busy_time: 8_284 + Math.floor(elapsedMs / 60_000),
    power_cycles: 64,
    power_on_hours: 4_974,
    unsafe_shutdowns: 39,
    media_errors: 0,
    num_err_log_entries: 110,
  });
}
