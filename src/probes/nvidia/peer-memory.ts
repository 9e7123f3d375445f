import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import type { PeerMemory } from '../../model/device.ts';

/** First driver whose open kernel modules export memory as dma-buf, and first kernel whose verbs import it. */
const [FIRST_DRIVER, FIRST_KERNEL] = [515, 5.012];
const MODULES = ['nvidia_peermem', 'nv_peer_mem'];

/**
 * How the driver lets network adapters reach the memory of its GPUs: by the module nvidia_peermem, or by dma-buf, which only its open kernel
 * modules offer. Source: NVIDIA GPU Operator, GPUDirect RDMA. Undefined when nothing could be read.
 */
export function readPeerMemory({ sys, proc }: Pick<Host, 'sys' | 'proc'>): PeerMemory | undefined {
  const module = peerModuleOf(sys);
  if (module !== undefined) return { can: true, why: `the module ${module} is loaded`, from: `/sys/module/${module}` };
  const text = proc.text('driver/nvidia/version');
  const driver = /Kernel Module[^\n]*?\s(\d+)(?:\.\d+)+\s/.exec(text ?? '')?.[1];
  if (text === undefined || driver === undefined) return undefined;
  const from = '/proc/driver/nvidia/version';
  if (!/Open Kernel Module/.test(text))
    return { can: false, why: 'nvidia_peermem is not loaded, and proprietary kernel modules offer no dma-buf', from };
  if (Number(driver) < FIRST_DRIVER)
    return { can: false, why: `nvidia_peermem is not loaded, and driver ${driver} offers no dma-buf`, from };
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(proc.text('sys/kernel/osrelease') ?? '') ?? [];
  if (major === undefined || minor === undefined)
    return { why: `driver ${driver} offers dma-buf, but the version of the kernel is unknown`, from };
  const can = Number(major) + Number(minor) / 1_000 >= FIRST_KERNEL;
  return {
    can,
    why: can ? `driver ${driver} with open kernel modules offers dma-buf` : `kernel ${major}.${minor} has no dma-buf for verbs`,
    from,
  };
}

/** The loaded module for peer memory. */
export const peerModuleOf = (sys: Tree): string | undefined => MODULES.find((name) => sys.exists(`module/${name}`));
