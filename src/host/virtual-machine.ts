import { defined } from '../model/defined.ts';
import type { VirtualMachine } from '../model/direct-access.ts';
import type { Tree } from './fs/tree.ts';

/** Names that hypervisors give to their machines. Firmware of real machines has none of them. */
const GUESTS = /\bKVM\b|QEMU|VMware|Virtual Machine|VirtualBox|HVM domU|Google Compute Engine|OpenStack|Bochs/i;

/** Finds out whether this is a virtual machine; undefined when no file shows it. */
export function readVirtualMachine(sys: Tree, proc: Tree): VirtualMachine | undefined {
  const firmware = ['sys_vendor', 'product_name']
    .map((file) => sys.text(`class/dmi/id/${file}`) ?? '')
    .join(' ')
    .trim();
  const name = firmware === '' ? undefined : firmware;
  const found = (is: boolean, from: string): VirtualMachine => ({ is, from, ...defined({ name }) });
  const type = sys.text('hypervisor/type');
  if (type !== undefined && type !== '') return { is: true, name: type, from: '/sys/hypervisor/type' };
  if (GUESTS.test(firmware)) return found(true, '/sys/class/dmi/id');
  // The flags of the first CPU are enough, and the file is long. A processor of another architecture has no such line.
  const flags = /^flags\s*:(.*)$/m.exec(proc.bytes('cpuinfo', 8_192)?.toString('latin1') ?? '')?.[1];
  if (flags === undefined) return undefined;
  return found(/\bhypervisor\b/.test(flags), '/proc/cpuinfo');
}
