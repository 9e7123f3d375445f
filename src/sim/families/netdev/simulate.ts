import type { Scenario, SimulatedHardware } from '../../family-simulation.ts';
import { pastOf } from '../../fault-past.ts';

const RESOURCE = 'intel.com/sriov_net';
const FUNCTIONS_PER_CARD = 4;
/** Growth per second of the counters of a function that works all the time. */
const BYTES_PER_SECOND = 250_000_000n;
const BYTES_PER_PACKET = 1_000n;
/** Broadcasts that the switch floods to each function, which drops them. */
const BROADCASTS_PER_SECOND = 3n;
const BYTES_PER_BROADCAST = 60n;

/**
 * Simulates 100 Gb/s adapters of Intel's 800 series with four virtual functions each, on two NUMA nodes. A program in user space has the
 * last function of each card.
 */
export function simulate(scenario: Scenario): SimulatedHardware {
  const cards = Array.from({ length: scenario.counts.netdev ?? 0 }, (_, card) => card);
  const files: Record<string, string> = {};
  const links: Record<string, string> = {};
  for (const card of cards) addCard(card, scenario, files, links);
  const ids = cards.flatMap((card) => numbers.map((number) => ({ id: addressOf(card, number + 1), numaNode: card % 2 })));
  if (ids.length === 0) return { files, links, resources: [] };
  const resources = [{ resource: RESOURCE, deviceIds: ids.map(({ id }) => id), numaNodes: ids.map(({ numaNode }) => numaNode) }];
  const targets = cards.map((card) => ({ id: addressOf(card, 0), kind: 'pf', names: [interfaceOf(card)] }));
  return { files, links, resources, targets, options: { source: 'sysfs' } };
}

const numbers = Array.from({ length: FUNCTIONS_PER_CARD }, (_, number) => number);
const hex = (value: number): string => value.toString(16).padStart(2, '0');
/** `fn` is 0 for the physical function. */
const addressOf = (card: number, fn: number): string => `0040:${hex(0x10 + card)}:00.${fn}`;
const interfaceOf = (card: number): string => `ens${card + 1}f0`;

function addCard(card: number, scenario: Scenario, files: Record<string, string>, links: Record<string, string>): void {
  const { elapsedMs } = scenario;
  const port = `sys/devices/pci0040:00/0040:00:${hex((card % 31) + 1)}.0`;
  const directory = `${port}/${addressOf(card, 0)}`;
  const { isOn: isDown, times: losses } = pastOf(scenario, 'port-down', addressOf(card, 0));
  const write = (path: string, texts: Readonly<Record<string, string | number | bigint>>): void => {
    for (const [file, text] of Object.entries(texts)) files[`${path}/${file}`] = `${text}\n`;
  };
  const link = { max_link_speed: '16.0 GT/s PCIe', max_link_width: 16 };
  write(port, { ...link, vendor: '0x8086' });
  write(directory, {
    ...link,
    ...{ current_link_speed: '16.0 GT/s PCIe', current_link_width: 16, power_state: 'D0' },
    ...{ vendor: '0x8086', device: '0x1592', class: '0x020000', numa_node: card % 2 },
    ...{ sriov_numvfs: FUNCTIONS_PER_CARD, sriov_totalvfs: 128 },
    aer_dev_correctable: 'RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0',
    aer_dev_nonfatal: 'UnsupReq 0\nTOTAL_ERR_NONFATAL 0',
    aer_dev_fatal: 'DLP 0\nTOTAL_ERR_FATAL 0',
  });
  const name = interfaceOf(card);
  const net = `${directory}/net/${name}`;
  const seconds = BigInt(Math.floor(elapsedMs / 1_000));
  write(net, {
    ...{ ifindex: 100 + card, address: `02:00:00:00:00:${hex(card)}`, dev_port: 0, mtu: 1_500, flags: '0x1003' },
    ...{ carrier: isDown ? 0 : 1, carrier_down_count: losses, carrier_changes: 2 * losses + 1 - (isDown ? 1 : 0), speed: 100_000 },
    'queues/tx-0/tx_timeout': 0,
    'queues/tx-1/tx_timeout': 0,
  });
  write(`${net}/statistics`, {
    ...{ rx_bytes: seconds * 2_000n, tx_bytes: seconds * 1_500n, rx_packets: seconds * 20n, tx_packets: seconds * 15n },
    ...{ multicast: seconds, rx_dropped: 0, tx_dropped: 0, rx_errors: 0, tx_errors: 0, rx_crc_errors: 0, rx_missed_errors: 0 },
  });
  links[`sys/bus/pci/devices/${addressOf(card, 0)}`] = `../../../${directory.slice('sys/'.length)}`;
  links[`sys/class/net/${name}`] = `../../${net.slice('sys/'.length)}`;
  links[`${net}/device`] = '../..';
  links[`${directory}/driver`] = '../../../../bus/pci/drivers/ice';
  for (const number of numbers) {
    const address = addressOf(card, number + 1);
    const own = `${port}/${address}`;
    const isInUserSpace = number === FUNCTIONS_PER_CARD - 1;
    write(own, { vendor: '0x8086', device: '0x1889', class: '0x020000', numa_node: card % 2 });
    links[`sys/bus/pci/devices/${address}`] = `../../../${own.slice('sys/'.length)}`;
    links[`${own}/physfn`] = `../${addressOf(card, 0)}`;
    links[`${directory}/virtfn${number}`] = `../${address}`;
    links[`${own}/driver`] = `../../../../bus/pci/drivers/${isInUserSpace ? 'vfio-pci' : 'iavf'}`;
    if (isInUserSpace) {
      const group = String(60 + card);
      links[`${own}/iommu_group`] = `../../../../kernel/iommu_groups/${group}`;
      links[`sys/bus/pci/drivers/vfio-pci/${address}`] = `../../../../${own.slice('sys/'.length)}`;
      files[`dev/vfio/${group}`] = '';
      files['dev/vfio/vfio'] = '';
    }
    write(
      `${directory}/sriov/${number}/stats`,
      functionCounters(elapsedMs, scenario.use === undefined ? undefined : (scenario.use[address]?.activeMs ?? 0)),
    );
  }
}

/** Without `activeMs` the function works all the time. */
function functionCounters(elapsedMs: number, activeMs: number = elapsedMs): Readonly<Record<string, bigint>> {
  const bytes = (BYTES_PER_SECOND * BigInt(Math.floor(activeMs))) / 1_000n;
  const broadcasts = (BROADCASTS_PER_SECOND * BigInt(Math.floor(elapsedMs))) / 1_000n;
  return {
    rx_bytes: bytes + broadcasts * BYTES_PER_BROADCAST,
    rx_packets: bytes / BYTES_PER_PACKET + broadcasts,
    rx_broadcast: broadcasts,
    rx_multicast: 0n,
    rx_dropped: broadcasts,
    tx_bytes: bytes,
    tx_packets: bytes / BYTES_PER_PACKET,
    tx_dropped: 0n,
    tx_errors: 0n,
  };
}
