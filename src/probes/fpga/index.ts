import { namesIn } from '../../model/known-text.ts';
import { defineFamily } from '../family.ts';
import { access } from './access.ts';
import { allConditions } from './conditions.ts';
import { metrics } from './metrics.ts';
import { options } from './options.ts';
import { isPresent } from './presence.ts';
import { createFpgaProbe } from './probe.ts';
import { problems } from './problems.ts';
import { resolve } from './resolve.ts';

/**
 * The family has two kinds of devices. `fpga` is a board. Its id is the PCI address of its physical (DFL) or user (Alveo) function,
 * or the platform device of a board outside PCI. `port` is one accelerator slot of a DFL board: `<address>-port<number>`.
 */
export const family = defineFamily({
  name: 'fpga',
  summary: 'FPGA boards: Intel DFL and OPAE, AMD Alveo (XRT), and FPGAs of SoCs known to the FPGA manager',
  kinds: ['fpga', 'port'],
  partSums: [
    {
      parent: 'FPGA card of several devices',
      parts: 'Devices of the card',
      areIncluded: 'No: each device has its own sensors and memory.',
    },
  ],
  metrics: Object.values(metrics),
  conditions: allConditions,
  problems,
  isPresent,
  // Source of the Intel cards: Linux drivers/fpga/dfl-pci.c.
  signs: [
    { vendor: '0x10ee', classes: ['12'], what: 'AMD (Xilinx) accelerator' },
    { vendor: '0x8086', classes: ['12'], devices: ['0x09c4', '0x0b2b', '0x0b30', '0xbcce'], what: 'Intel FPGA card' },
  ],
  options,
  createProbe: createFpgaProbe,
  resolve,
  access,
  known: {
    // Sensors of the cards' controllers.
    formats: ['d5005bmc', 'n3000bmc', 'n5010bmc', 'n6000bmc', 'c6100bmc'],
    files: {
      values: namesIn(`
        ap#_event consumed dev_offline dev_state device_bad_state ecc_* errors *_errors inject_error id inf#_cal_fail
        inf#_init_done instance level mig_calibration ready recovery temperature threshold# threshold#_reached
        xmc_heartbeat_stall clock_freqs devices kdsstat memstat_raw state status vmr_status
      `),
      texts: ['bmcfw_version', 'VBNV', 'bitstream_id'],
      designs: ['afu_id', 'compat_id', 'interface_id', 'interface_uuids', 'xclbinuuid'],
    },
  },
});
