import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { access } from '../../../src/probes/fpga/index.ts';
import { probeMachine, reportOf } from './harness.ts';

/** Gives what a container gets besides the variable with the PCI address, which each device on the bus has. */
function accessOf(machine: string, id: string, files: Readonly<Record<string, string>> = {}): Omit<ReturnType<typeof access>, 'env'> {
  const probed = probeMachine(machine, ({ root }) => {
    for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text);
  });
  const { device } = reportOf(probed.collect(), id);
  probed.machine.remove();
  const { env, ...others } = access(device);
  expect(env).toEqual(device.pciAddress === undefined ? undefined : { 'PCIDEVICE_{RESOURCE}': device.pciAddress });
  return others;
}

describe('what a container gets', () => {
  it('for a port is its node', () => {
    expect(accessOf('n3000-bare-zeros', '0000:05:00.0-port0')).toEqual({ deviceNodes: [{ path: '/dev/dfl-port.0', permissions: 'rw' }] });
  });

  it('for a whole board is all its ports, and never the management node', () => {
    expect(accessOf('port-on-virtual-function', '0000:3b:00.0')).toEqual({
      deviceNodes: [
        { path: '/dev/dfl-port.0', permissions: 'rw' },
        { path: '/dev/dfl-port.1', permissions: 'rw' },
      ],
      annotations: { 'com.intel.fpga.mode': 'fpga.intel.com/region' },
    });
  });

  it('for an Alveo board are management, render and queue nodes, as devices and as mounts', () => {
    const paths = ['/dev/xclmgmt45824', '/dev/dri/renderD128', '/dev/xfpga/dma.qdma.u45825.0'];
    expect(accessOf('alveo-u250-in-use', '0000:b3:00.1')).toEqual({
      deviceNodes: paths.map((path) => ({ path, permissions: 'rwm' })),
      mounts: paths.map((path) => ({ path, hostPath: path, readOnly: false })),
    });
  });

  it('for a board without node is nothing', () => {
    expect(accessOf('zynqmp-manager-only', 'firmware:zynqmp-firmware:pcap')).toEqual({ deviceNodes: [] });
    expect(accessOf('region-without-port', '0000:01:00.0')).toEqual({ deviceNodes: [] });
  });
});
