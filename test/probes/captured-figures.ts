/** What becomes of the figures that the source of a capture states. */
export interface Capture {
  /** The test that compares its figures with series. Absent: none of them is a series. */
  readonly test?: string;
  /** Figures that are no series, with the reason. */
  readonly without?: Readonly<Record<string, string>>;
}

const AMDGPU = 'amdgpu/captures.test.ts';
const INTELGPU = 'intelgpu/captures.test.ts';
const NETDEV = 'netdev/captures.test.ts';
const NVME = 'nvme/captures.test.ts';
const DECLARED = 'declared/captures.test.ts';
const WHOLE = 'whole-machines.test.ts';

const PCI_ID = { 'PCI id': 'the API tells it; the test compares it there' };
const OTHER_PROGRAM = 'the output of a program that the agent does not run';
const card = (test: string, without: Readonly<Record<string, string>> = {}): Capture => ({ test, without: { ...PCI_ID, ...without } });

/** By path below the folder of captures: a file, or a directory with all that is in it. */
export const CAPTURED: Readonly<Record<string, Capture>> = {
  'amdgpu/rx6900xt': card(AMDGPU, { 'version 1.3 of gpu_metrics': 'it decides how the table is decoded, and says nothing of the card' }),
  'amdgpu/rx7800xt': card(AMDGPU, {
    'version 1.3 of gpu_metrics': 'it decides how the table is decoded, and says nothing of the card',
    'gfx 24 % of gpu_metrics': 'gpu_busy_percent tells the use, and one series has one source',
    'energy 0 of gpu_metrics': 'a counter that stays 0 means that the card has none',
  }),
  'amdgpu/rx7900xtx': card(AMDGPU),
  'amdgpu/rx7700s': card(AMDGPU),
  'amdgpu/rx6600xt': card(AMDGPU),
  'amdgpu/rx6600': card(AMDGPU),
  'amdgpu/rx5500xt': card(AMDGPU, { 'memory temperature 0': 'the sensor is not wired' }),
  'amdgpu/vega56': card(AMDGPU),
  'amdgpu/rx580': card(AMDGPU),
  'amdgpu/phoenix': card(AMDGPU, {
    'version 2.1 of gpu_metrics': 'it decides how the table is decoded, and says nothing of the card',
    'gfx activity 79 of gpu_metrics': 'gpu_busy_percent tells the use, and one series has one source',
  }),
  'amdgpu/vangogh': card(AMDGPU),
  'amdgpu/r7-240': card(AMDGPU),
  'amdgpu/hd7870': card(AMDGPU),
  'amdgpu/kfd-mi210-8gpu': {
    test: AMDGPU,
    without: {
      'minors 128 to 135': 'they are in the paths of the device nodes, which the API tells; the test compares them',
      'XGMI links': 'they are peers of a device, which placement uses and the API tells; the tree has two groups of four, not pairs',
      'two nodes of processors': 'a processor is no device that is handed out',
    },
  },
  'amdgpu/kfd-mi300x-8gpu-cpx': {
    test: AMDGPU,
    without: {
      'minors 128 to 190': 'they are in the paths of the device nodes, which the API tells; the test compares them',
      'local_mem_size 0': 'it means that the node does not tell the size',
      'two nodes of processors': 'a processor is no device that is handed out',
    },
  },
  'amdgpu/rocm-smi': {
    without: { 'values of 8 MI100, an RX 6700 XT and a Vega 20': `${OTHER_PROGRAM}; there are no files of these machines` },
  },
  'amdgpu/amdgpu_top': { without: { 'values of an RX 9060 XT': `${OTHER_PROGRAM}; there are no files of this machine` } },
  'amdgpu/amdgpu_firmware_info': { without: { 'versions of firmware of a Vega 10': 'a debug file, and the agent reads none' } },

  'intel-gpu/a380-xe': card(INTELGPU),
  'intel-gpu/b580-6.16': card(INTELGPU, { 'energy 0 of the card': 'a counter that stays 0 means that the card has none' }),
  'intel-gpu/tigerlake': card(INTELGPU),
  'intel-gpu/cometlake': card(INTELGPU),
  'intel-gpu/intel_gpu_top': {
    without: {
      'render and video busy': `${OTHER_PROGRAM}: it opens performance counters of the kernel; the agent takes the use of engines from fdinfo`,
      'power of GPU and package': `${OTHER_PROGRAM}: the power of an integrated GPU has no file`,
      'pid of a client': `${OTHER_PROGRAM}; the agent finds clients by their fdinfo`,
    },
  },

  'sriov/intel-pf-4vf': { test: NETDEV },
  'sriov/amd-pollara/ip_link_show_enp132s0.txt': { test: NETDEV },
  'sriov/amd-pollara/ethtool_S_enp132s0v0.txt': {
    test: NETDEV,
    without: {
      'frames and octets of the port': 'they count the whole port, so they are nobody’s who holds one function; the test looks for them',
    },
  },
  'sriov/amd-pollara/ethtool_S_enp132s0.txt': {
    without: { 'all counters': 'ethtool asks the firmware; the agent reads the same counters in /sys/class/net' },
  },
  'sriov/amd-pollara/ip_link_show_enp68s0v0.txt': { without: { 'no figure': 'an interface without functions' } },
  'sriov/amd-pollara/nicctl_show_card_j.txt': { without: { 'all values': OTHER_PROGRAM } },
  'sriov/amd-pollara/nicctl_show_lif_statistics_j.txt': { without: { 'all counters': OTHER_PROGRAM } },
  'sriov/amd-pollara/nicctl_show_port_card1_j.txt': { without: { 'all values': OTHER_PROGRAM } },
  'sriov/amd-pollara/nicctl_show_port_statistics_j.txt': { without: { 'all counters': OTHER_PROGRAM } },
  'sriov/amd-pollara/rdma_link.txt': {
    without: { 'states of ports': `${OTHER_PROGRAM}; the family infiniband reads the files of such ports` },
  },
  'sriov/amd-pollara/rdma_statistic_j.txt': {
    without: { 'all counters': `${OTHER_PROGRAM}; the family infiniband reads the files of such ports` },
  },
  'sriov/amd-pollara/pci_slot_ionic_1.txt': { without: { 'PCI address': 'the machine of the test has it as its link' } },
  'sriov/amd-pollara/pci_slot_rocep132s0.txt': { without: { 'PCI address': 'the machine of the test has it as its link' } },
  'sriov/amd-pollara/command_mappings.json': { without: { 'no figure': 'it says which command printed which file' } },

  'nvme/samsung-pm1743-pm1735a-multipath': {
    test: NVME,
    without: {
      'NQN of a subsystem': 'model and serial number, its parts, are labels of device_info',
      'NQN and id of the host': 'sysfs does not have them',
      'NUMA nodes of a path': 'they guide the choice of a path, and say nothing of its health',
      'queue depth of a path': 'the operations in flight are counted on the namespace, not on each path',
    },
  },
  'nvme/nvme-cli/v2.3-nvme-smart-log.json': {
    test: NVME,
    without: { 'temperature 36': 'its source cuts 36.85; 310 K are 36.85 °C, as the kernel’s own monitor counts' },
  },
  'nvme/nvme-cli/v2.3-nvme-smart-log-float.json': { test: NVME },
  'nvme/nvme-cli/v2.3-nvme-smart-log-string.json': { test: NVME },
  'nvme/nvme-cli/v2.3-nvme-list.json': { without: { 'identity of two drives': 'sysfs has the same: labels of device_info' } },
  'nvme/nvme-cli/smartctl-device-nvme0.json': { without: { 'all values': `${OTHER_PROGRAM}; they are those of the SMART log` } },
  'nvme/nvme-cli/smartctl-scan.json': { without: { 'no figure': OTHER_PROGRAM } },

  'neuron/trn2n.48xlarge-neuron-ls-j.json': { test: DECLARED },
  'neuron/trn2n.48xlarge-neuron-ls.txt': {
    test: DECLARED,
    without: { 'cores and memory of the other 14 devices': 'the agent reads the JSON form, which the manual cuts to two devices' },
  },
  'neuron/trn2n.48xlarge-neuron-ls-wide.txt': { without: { 'all values': 'those of the table, for people' } },
  'neuron/trn2n.48xlarge-neuron-ls-show-all-procs.txt': { without: { 'all values': 'those of the table, for people' } },
  'neuron/trn2n.48xlarge-neuron-ls-topology.txt': { without: { 'links of devices': 'a drawing for people' } },
  ...Object.fromEntries(
    Array.from({ length: 13 }, (_, n) => [
      `neuron/doc-neuron-monitor-${String(n + 1).padStart(2, '0')}.txt`,
      { without: { 'all values': `parts of a manual that are no document; ${OTHER_PROGRAM}` } },
    ]),
  ),

  'gaudi/hl-smi-gaudi3-2cards.csv': {
    test: DECLARED,
    without: { 'memory free': 'the difference of two series: total - used' },
  },

  'fdinfo/amdgpu-vram-gtt-cpu.txt': {
    test: AMDGPU,
    without: { 'gtt and cpu memory': 'memory of the host, which no device limits' },
  },
  'fdinfo/amdxdna-idle.txt': {
    test: AMDGPU,
    without: { 'all values': 'a client of an NPU, a device that no family reads; the test looks that no GPU gets it' },
  },

  'pci/node_exporter': {
    test: DECLARED,
    without: { ...PCI_ID, 'power_state D0': 'it decides whether a function is read; families in code tell it as device_<family>_asleep' },
  },

  'edac/sys': {
    without: {
      'errors of mc0, its rows and channels':
        'they are errors of the memory of the host, which belongs to no device that is handed out; the counts are made up',
    },
  },

  'hwloc/32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2': {
    test: WHOLE,
    without: {
      'mic0 and scif0': 'Xeon Phi, a device that no family reads; scif0 is a link without target in the archive',
      'misc/nvme0': 'a driver of 2013 without the class nvme',
      'dax and pmem': 'memory of the host',
    },
  },
  'hwloc/32intel64-2p8co2t+8ve.tar.bz2': {
    test: WHOLE,
    without: { 'sizes of caches': 'constants of the model', 'sensors 0 to 37': 'their numbers have no names' },
  },
  'hwloc/nvidiagpunumanodes.tar.bz2': {
    test: WHOLE,
    without: {
      'V100 as NUMA nodes 250 to 255':
        'the archive has neither ids of PCI functions nor the library of the driver, so there is no GPU to read',
    },
  },
};
