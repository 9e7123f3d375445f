import { family } from '../../src/probes/infiniband/index.ts';
import { hardwareOf } from '../support/hardware.ts';
import type { WatchedMachine } from './watched-node.ts';

export type Files = Readonly<Record<string, string>>;

export const HCA_NAMES = ['mlx5_0', 'mlx5_1', 'mlx5_2'];
const simulated = hardwareOf(family, { infiniband: HCA_NAMES.length }, 30_000);
/** Three adapters of a compute fabric, all up. */
export const compute: WatchedMachine = { family, files: simulated.files, links: simulated.links };

export const pathIn = (files: Files, device: string, file: string): string =>
  Object.keys(files).find((path) => path.endsWith(`/infiniband/${device}/${file}`)) ?? '';
export const path = (device: string, file: string): string => pathIn(compute.files, device, file);
export const without = (entries: Files, part: RegExp): Files =>
  Object.fromEntries(Object.entries(entries).filter(([name]) => !part.test(name)));

/** One function of a RoCE adapter with its interface. */
export function rocePort(index: number, state: 'up' | 'not provisioned'): Pick<Required<WatchedMachine>, 'files' | 'links'> {
  const [device, address] = [`mlx5_${index}`, `0000:a1:00.${index % 8}`];
  const pci = `sys/devices/pci0000:a0/${address}`;
  const isUp = state === 'up';
  const texts: Files = {
    vendor: '0x15b3',
    class: '0x020000',
    [`net/eth${index}/dev_port`]: '0',
    [`net/eth${index}/flags`]: isUp ? '0x1003' : '0x1002',
    [`infiniband/${device}/fw_ver`]: '22.35.2000',
    [`infiniband/${device}/hca_type`]: 'MT4125',
    [`infiniband/${device}/node_guid`]: `a088:c203:00aa:b00${index}`,
    [`infiniband/${device}/sys_image_guid`]: 'a088:c203:00aa:b000',
    [`infiniband/${device}/ports/1/state`]: isUp ? '4: ACTIVE' : '1: DOWN',
    [`infiniband/${device}/ports/1/phys_state`]: isUp ? '5: LinkUp' : '3: Disabled',
    [`infiniband/${device}/ports/1/rate`]: isUp ? '100 Gb/sec (4X EDR)' : '40 Gb/sec (4X QDR)',
    [`infiniband/${device}/ports/1/link_layer`]: 'Ethernet',
    [`infiniband/${device}/ports/1/counters/link_downed`]: '0',
  };
  return {
    files: Object.fromEntries(Object.entries(texts).map(([name, text]) => [`${pci}/${name}`, `${text}\n`])),
    links: {
      [`sys/bus/pci/devices/${address}`]: `../../../devices/pci0000:a0/${address}`,
      [`sys/class/infiniband/${device}`]: `../../devices/pci0000:a0/${address}/infiniband/${device}`,
      [`sys/class/net/eth${index}`]: `../../devices/pci0000:a0/${address}/net/eth${index}`,
      [`${pci}/infiniband/${device}/device`]: '../..',
    },
  };
}
