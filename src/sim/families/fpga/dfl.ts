import type { FaultTarget, Scenario } from '../../family-simulation.ts';
import { pastOf } from '../../fault-past.ts';
import { SimulatedTree, wave } from './tree.ts';

/** Files and ids of one board of the simulated node. */
export interface SimulatedBoard {
  readonly files: Readonly<Record<string, string>>;
  readonly links: Readonly<Record<string, string>>;
  readonly resource: string;
  readonly deviceId: string;
  readonly numaNode: number;
  readonly target: FaultTarget;
}

const INTERFACE_ID = 'bfac4d851ee856fe8c95865ce1bbaa2d';
const AFU_ID = 'd8424dc4a4a3c413f89e433683f9040b';

/** Intel's plugin names a resource by the first digits of both ids, followed by both complete ids in base64url. */
const RESOURCE = `fpga.intel.com/af-${INTERFACE_ID.slice(0, 3)}.${AFU_ID.slice(0, 3)}.${Buffer.from(INTERFACE_ID + AFU_ID, 'hex').toString('base64url')}`;

const PCIE_FAULT = '0x4';

/** Faults of a board at this moment. */
interface BoardFaults {
  readonly isHot: boolean;
  readonly hasError: boolean;
}

/** D5005: `number` counts the boards of this make. */
export function simulateDfl(board: number, number: number, scenario: Scenario): SimulatedBoard {
  const { elapsedMs } = scenario;
  const tree = new SimulatedTree(board);
  const past = (name: string): boolean => pastOf(scenario, name, tree.address).isOn;
  const faults = { isHot: past('hot'), hasError: past('nonfatal-error') };
  const numaNode = board % 2;
  tree.addFunction({ vendor: '0x8086', device: '0x0b2b', subsystem_device: '0x0000', numa_node: numaNode }, 'dfl-pci');
  const region = `fpga_region/region${number * 2}`;
  const engine = `${region}/dfl-fme.${number}`;
  addEngine(tree, engine, number, elapsedMs, faults);
  const port = `${region}/dfl-port.${number}`;
  addPort(tree, port, number);
  tree.link(`class/fpga_region/region${number * 2}`, region);
  tree.link(`bus/platform/devices/dfl-port.${number}`, port);
  tree.link(`bus/platform/devices/dfl-fme.${number}`, engine);
  // Regular files replace the character devices. The last close of a real one would reset the port.
  const files = { ...tree.files, [`dev/dfl-port.${number}`]: '', [`dev/dfl-fme.${number}`]: '' };
  return {
    files,
    links: tree.links,
    resource: RESOURCE,
    deviceId: `dfl-port.${number}`,
    numaNode,
    target: { id: tree.address, kind: 'fpga' },
  };
}

function addEngine(tree: SimulatedTree, engine: string, number: number, elapsedMs: number, faults: BoardFaults): void {
  const reconfiguration = `${engine}/dfl-fme-region.${number}/fpga_region/region${number * 2 + 1}`;
  const manager = `${engine}/dfl-fme-mgr.${number}/fpga_manager/fpga${number}`;
  const bridge = `${engine}/dfl-fme-bridge.${number}/fpga_bridge/br${number}`;
  tree.add({
    [`${engine}/ports_num`]: 1,
    [`${engine}/bitstream_id`]: '0x2000001030b0ab0',
    [`${engine}/bitstream_metadata`]: '0x2010091',
    [`${engine}/errors/fme_errors`]: '0x0',
    [`${engine}/errors/pcie0_errors`]: '0x0',
    [`${engine}/errors/pcie1_errors`]: '0x0',
    [`${engine}/errors/nonfatal_errors`]: faults.hasError ? PCIE_FAULT : '0x0',
    [`${engine}/errors/catfatal_errors`]: '0x0',
    [`${engine}/errors/inject_errors`]: '0x0',
    [`${reconfiguration}/compat_id`]: INTERFACE_ID,
    [`${manager}/name`]: 'DFL FME FPGA Manager',
    [`${manager}/state`]: 'unknown',
    [`${manager}/status`]: '',
    [`${bridge}/name`]: 'DFL FPGA Bridge',
    [`${bridge}/state`]: 'enabled',
  });
  tree.link(`class/fpga_region/region${number * 2 + 1}`, reconfiguration);
  tree.link(`class/fpga_manager/fpga${number}`, manager);
  tree.link(`class/fpga_bridge/br${number}`, bridge);
  addMonitors(tree, engine, number, elapsedMs, faults);
}

function addMonitors(tree: SimulatedTree, engine: string, number: number, elapsedMs: number, { isHot }: BoardFaults): void {
  const celsius = (middle: number): number => Math.round(wave(elapsedMs, number, middle, 6)) * 1_000;
  const core = (middle: number): number => (isHot ? 94_000 : celsius(middle));
  const thermal = `${engine}/hwmon/hwmon${100 + number * 2}`;
  const controller = `${engine}/dfl_dev.6/subdev_spi_altera.3.auto/spi_master/spi4/spi4.0/d5005bmc-hwmon.${number}.auto/hwmon/hwmon${101 + number * 2}`;
  tree.add({
    [`${thermal}/name`]: 'dfl_fme_thermal',
    [`${thermal}/temp1_input`]: core(54),
    [`${thermal}/temp1_max`]: 90_000,
    [`${thermal}/temp1_crit`]: 93_000,
    [`${thermal}/temp1_max_alarm`]: isHot ? 1 : 0,
    [`${thermal}/temp1_crit_alarm`]: isHot ? 1 : 0,
    [`${controller}/name`]: 'd5005bmc_hwmon',
    [`${controller}/temp1_input`]: core(52),
    [`${controller}/temp1_label`]: 'FPGA Core Temperature',
    [`${controller}/temp1_crit`]: 100_000,
    [`${controller}/temp2_input`]: celsius(38),
    [`${controller}/temp2_label`]: 'Board Temperature',
    [`${controller}/power1_input`]: Math.round(wave(elapsedMs, number, 64, 9) * 1_000_000),
    [`${controller}/power1_label`]: 'Board Power',
  });
  tree.link(`class/hwmon/hwmon${100 + number * 2}`, thermal);
  tree.link(`class/hwmon/hwmon${101 + number * 2}`, controller);
}

function addPort(tree: SimulatedTree, port: string, number: number): void {
  tree.add({
    [`${port}/id`]: 0,
    [`${port}/afu_id`]: AFU_ID,
    [`${port}/power_state`]: '0x0',
    [`${port}/ap1_event`]: 0,
    [`${port}/ap2_event`]: 0,
    [`${port}/ltr`]: 1,
    [`${port}/dev`]: `239:${number}`,
    [`${port}/errors/errors`]: '0x0',
    [`${port}/errors/first_error`]: '0x0',
  });
}
