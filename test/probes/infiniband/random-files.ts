import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { removeAsKernel } from '../../support/kernel-files.ts';
import type { Choose } from '../../support/seeded.ts';

export const COUNTS = [
  '1\n',
  '3',
  '0\n',
  '255\n',
  '4294967295\n',
  '9007199254740993\n',
  '18446744073709551615\n',
  '18446744073709551616\n',
];
export const ODD = ['+5\n', '-1\n', ' 7 \n', '8\r\n', '', '\n', '007\n', '1e5\n', '5\n6\n', '9'.repeat(4_096), 'N/A (no PMA)\n'];
export const COUNTERS: Readonly<Record<string, readonly string[]>> = {
  counters: ['port_rcv_data', 'symbol_error', 'link_downed', 'port_xmit_wait'],
  hw_counters: ['rx_write_requests', 'rx_bytes', 'out_of_sequence'],
  counters_ext: ['port_rcv_data_64'],
};
export const PORT_FILES: Readonly<Record<string, readonly string[]>> = {
  state: ['4: ACTIVE\n', '1: DOWN\n', '2: INIT', ''],
  phys_state: ['5: LinkUp\n', '2: Polling\n', 'x'],
  rate: ['400 Gb/sec (4X NDR)\n', '10 Gb/sec (4X)\n', ''],
  link_layer: ['InfiniBand\n', 'Ethernet\n'],
  sm_lid: ['0x0\n', '0x3\n'],
};
export const DEVICE_FILES: Readonly<Record<string, readonly string[]>> = {
  fw_ver: ['1.1\n', '2.0', ''],
  node_guid: ['a088:c203:00aa:b000\n', 'a088:c203:00aa:b001\n', '0000:0000:0000:0000\n'],
};

/** Writes the file in place, replaces it with a new file, removes it, or makes it a directory. Returns the way that was chosen. */
export function writeSomehow(pick: Choose, path: string, text: string): string {
  const way = (['over', 'over', 'anew', 'remove', 'directory'] as const)[pick(5)];
  if (!existsSync(dirname(path))) return 'nowhere';
  if (way !== 'over' || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) removeAsKernel(path);
  if (way === 'directory') mkdirSync(path);
  else if (way !== 'remove') writeFileSync(path, text);
  return `${path} ${way} ${JSON.stringify(text.slice(0, 20))}`;
}
