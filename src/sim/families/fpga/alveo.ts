import type { Scenario } from '../../family-simulation.ts';
import { pastOf } from '../../fault-past.ts';
import type { SimulatedBoard } from './dfl.ts';
import { SimulatedTree, wave } from './tree.ts';

const SHELL = 'xilinx_u250_gen3x16_xdma_shell_4_1';

/** U250: management function .0, user function .1. */
export function simulateAlveo(board: number, scenario: Scenario): SimulatedBoard {
  const { elapsedMs } = scenario;
  const numaNode = board % 2;
  const management = new SimulatedTree(board, 0);
  management.addFunction({ vendor: '0x10ee', device: '0x5004', numa_node: numaNode }, 'xclmgmt');
  const instance = (0x10 << 16) + ((0x21 + board) << 8);
  management.add({
    ready: 1,
    dev_offline: 0,
    recovery: 0,
    instance,
    'firewall.m.4194304/status': 0,
    'firewall.m.4194304/level': '18446744073709551615',
  });
  management.files[`${management.directory}/mgmt_pf`] = '';
  const user = new SimulatedTree(board, 1);
  user.addFunction({ vendor: '0x10ee', device: '0x5005', numa_node: numaNode }, 'xocl');
  user.files[`${user.directory}/user_pf`] = '';
  const renderNode = `renderD${160 + board}`;
  addUser(user, renderNode, board, elapsedMs);
  addSensors(user, board, elapsedMs, pastOf(scenario, 'hot', user.address).isOn);
  const nodes = { [`dev/xclmgmt${instance}`]: '', [`dev/dri/${renderNode}`]: '' };
  return {
    files: { ...management.files, ...user.files, ...nodes },
    links: { ...management.links, ...user.links },
    resource: `amd.com/${SHELL}-0`,
    deviceId: user.address,
    numaNode,
    target: { id: user.address, kind: 'fpga', lacks: ['nonfatal-error'] },
  };
}

const KERNELS_PER_SECOND = 40;

function addUser(user: SimulatedTree, renderNode: string, board: number, elapsedMs: number): void {
  const executions = Math.floor((elapsedMs / 1_000) * KERNELS_PER_SECOND);
  const bytes = Math.round(wave(elapsedMs, board, 2_048, 512)) * 1_048_576;
  user.add({
    ready: '0x1',
    dev_offline: 0,
    device_bad_state: 0,
    mig_calibration: '0x1',
    xclbinuuid: 'd2d4f4a5-44a9-4d2f-9a8d-3a8d0b9b1f10',
    interface_uuids: '862c7020a250293e32036f19956669e5',
    'rom.u.4194304/VBNV': SHELL,
    'rom.u.4194304/timestamp': 0,
    'icap.u.4194304/clock_freqs': '300\n500\n0',
    'xmc.u.4194304/serial_num': `21320733V0${board}0`,
    'xmc.u.4194304/xmc_heartbeat_stall': 0,
    'mig.u.4194304/name': 'bank0',
    'mig.u.4194304/ecc_enabled': 1,
    'mig.u.4194304/ecc_status': '0x0',
    'mig.u.4194304/ecc_ce_cnt': Math.floor(elapsedMs / 600_000),
    'mig.u.4194304/ecc_ue_cnt': 0,
    [`drm/${renderNode}/dev`]: `226:${160 + board}`,
    kdsstat: [
      'xclbin:\t\t\td2d4f4a5-44a9-4d2f-9a8d-3a8d0b9b1f10',
      `outstanding execs:\t${2 + (Math.floor(elapsedMs / 1_000) % 3)}`,
      `total execs:\t\t${executions}`,
      'contexts:\t\t0',
      'client pid:',
    ].join('\n'),
    memstat_raw: [`${bytes} 12 0`, '0 0 0', '18446744073709551594 -22 18446744073709551594', `${bytes} 12 0`].join('\n'),
  });
}

/** Above the limit at which the driver shuts the card down, in thousandths of a degree. */
const HOT = 98_000;

function addSensors(user: SimulatedTree, board: number, elapsedMs: number, isHot: boolean): void {
  const monitor = `xmc.u.4194304/hwmon/hwmon${300 + board}`;
  const celsius = (middle: number): number => Math.round(wave(elapsedMs, board, middle, 7)) * 1_000;
  user.add({
    [`${monitor}/name`]: 'xocl_xmc',
    [`${monitor}/temp1_input`]: celsius(44),
    [`${monitor}/temp1_label`]: 'PCB TOP FRONT',
    [`${monitor}/temp4_input`]: isHot ? HOT : celsius(61),
    [`${monitor}/temp4_label`]: 'FPGA TEMP',
    [`${monitor}/fan1_input`]: Math.round(wave(elapsedMs, board, 1_400, 150)),
    [`${monitor}/fan1_label`]: 'FAN SPEED',
    [`${monitor}/power1_input`]: Math.round(wave(elapsedMs, board, 88, 15) * 1_000_000),
    [`${monitor}/power1_label`]: 'POWER',
  });
  user.link(`class/hwmon/hwmon${300 + board}`, monitor);
}
