import type { Tree } from '../../host/fs/tree.ts';

/**
 * Modules that print any text for a process that holds one of their devices, as the kernel and without a device: an ioctl of the driver of AWS
 * Neuron (ncdev_printk in neuron_cdev.c) takes 512 bytes. Every record without a device may then be the words of a process.
 */
const MODULES: readonly string[] = ['neuron'];

export const printsForProcesses = (sys: Tree): boolean => MODULES.some((name) => sys.identity(`module/${name}`) !== undefined);
