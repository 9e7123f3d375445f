import type { FaultTarget, Scenario, SimulatedHardware } from '../../family-simulation.ts';
import { pastOf } from '../../fault-past.ts';
import { type SimulatedGpu, simulatedDocument, simulatedListing, simulatedTopology, simulateGpu } from './document.ts';
import { kernelLog } from './kernel-log.ts';
import { pidsOf, processFiles } from './processes.ts';

/** Program that prints the files in its own directory. */
const PROGRAM = `#!/bin/sh
here=$(dirname "$0")
case "$1" in
  -L) exec cat "$here/nvidia-smi.list" ;;
  topo) exec cat "$here/nvidia-smi.topology" ;;
  *) exec cat "$here/nvidia-smi.xml" ;;
esac
`;

/** Program that never answers. */
const HUNG_PROGRAM = '#!/bin/sh\nexec sleep 3600\n';

/**
 * Simulates H100 boards on two NUMA nodes. With four or more, the last has MIG. A board that no pod holds is idle.
 */
export function simulate(scenario: Scenario): SimulatedHardware {
  const gpus = Array.from({ length: scenario.counts.nvidia ?? 0 }, (_, index) => simulateGpu(index, scenario));
  const files: Record<string, string> = {};
  const links: Record<string, string> = {};
  for (const gpu of gpus) addPciFunction(gpu, files, links);
  if (gpus.length > 0) {
    files['proc/driver/nvidia/version'] = 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08\n';
    files['proc/driver/nvidia-caps/mig-minors'] = simulatedMinors(gpus);
    files['bin/nvidia-smi'] = pastOf(scenario, 'hung-program').isOn ? HUNG_PROGRAM : PROGRAM;
    const pids = pidsOf(gpus);
    Object.assign(files, processFiles(gpus, pids));
    files['bin/nvidia-smi.xml'] = simulatedDocument(gpus, pids);
    files['bin/nvidia-smi.list'] = simulatedListing(gpus);
    files['bin/nvidia-smi.topology'] = simulatedTopology(gpus);
  }
  return {
    files,
    links,
    ...(gpus.length > 0 && { kernelLog: kernelLog(gpus, scenario) }),
    resources: gpus.length === 0 ? [] : resourcesOf(gpus),
    ...(gpus.length > 0 && { targets: gpus.map(targetOf), stoppedIds: gpus.filter(({ isLost }) => isLost).map(({ uuid }) => uuid) }),
    options: { 'smi-path': '{root}/bin/nvidia-smi' },
    ...(gpus.length > 0 && { configuration: { prices: { nvidia: 2.5 } } }),
  };
}

/** The processes of a split GPU are those of its instances, so none of them is a stranger to the GPU. */
function targetOf({ uuid, address, instances }: SimulatedGpu, index: number): FaultTarget {
  return { id: uuid, kind: 'gpu', names: [`GPU ${index}`, address], ...(instances.length > 0 && { lacks: ['stranger'] }) };
}

/** Uses the numbers of the kernel driver: a block of 135 minors for each GPU, nine for each GPU instance. */
function simulatedMinors(gpus: readonly SimulatedGpu[]): string {
  const instances = gpus.flatMap(({ index, instances }) =>
    instances.flatMap(({ gpuInstance }) => {
      const first = 3 + 135 * index + 9 * gpuInstance;
      return [`gpu${index}/gi${gpuInstance}/access ${first}`, `gpu${index}/gi${gpuInstance}/ci0/access ${first + 1}`];
    }),
  );
  return ['config 1', 'monitor 2', ...instances].map((line) => `${line}\n`).join('');
}

function addPciFunction({ address, numaNode, index }: SimulatedGpu, files: Record<string, string>, links: Record<string, string>): void {
  const folder = `sys/devices/pci0008:00/0008:00:${(index + 1).toString(16).padStart(2, '0')}.0/${address}`;
  const facts: Readonly<Record<string, string>> = {
    vendor: '0x10de',
    device: '0x2330',
    class: '0x030200',
    numa_node: String(numaNode),
    power_state: 'D0',
    aer_dev_correctable: 'RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0',
    aer_dev_nonfatal: 'UnsupReq 0\nTOTAL_ERR_NONFATAL 0',
    aer_dev_fatal: 'MalfTLP 0\nTOTAL_ERR_FATAL 0',
  };
  for (const [name, text] of Object.entries(facts)) files[`${folder}/${name}`] = `${text}\n`;
  links[`sys/bus/pci/devices/${address}`] = `../../../${folder.slice('sys/'.length)}`;
  links[`${folder}/driver`] = '../../../../bus/pci/drivers/nvidia';
}

function resourcesOf(gpus: readonly SimulatedGpu[]): SimulatedHardware['resources'] {
  const whole = gpus.filter(({ instances }) => instances.length === 0);
  const split = gpus.flatMap(({ instances, numaNode }) => instances.map(({ uuid }) => ({ uuid, numaNode })));
  return [
    { resource: 'nvidia.com/gpu', deviceIds: whole.map(({ uuid }) => uuid), numaNodes: whole.map(({ numaNode }) => numaNode) },
    { resource: 'nvidia.com/mig-1g.10gb', deviceIds: split.map(({ uuid }) => uuid), numaNodes: split.map(({ numaNode }) => numaNode) },
  ].filter(({ deviceIds }) => deviceIds.length > 0);
}
