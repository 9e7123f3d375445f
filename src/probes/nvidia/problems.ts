import type { ProblemSpec } from '../../model/collection.ts';

export const problems = [
  {
    code: 'smi-not-found',
    meaning: 'NVIDIA hardware is there, but the command that tells of it is not.',
    remedy:
      'Let the container runtime mount it (runtimeClassName nvidia, NVIDIA_DRIVER_CAPABILITIES=utility), or set --probe.nvidia.smi-path.',
  },
  {
    code: 'smi-not-executable',
    meaning: 'The command is there and may not be run.',
    remedy: 'Check the mode of the file and the security context of the container.',
  },
  {
    code: 'driver-not-loaded',
    meaning: 'The command cannot reach the kernel driver.',
    remedy: 'Load the driver (modprobe nvidia) and look for the reason in the kernel log.',
  },
  {
    code: 'driver-library-mismatch',
    meaning: 'Library and kernel driver are of different versions, as after an upgrade without a reload.',
    remedy: 'Reload the driver or reboot; in a container, restart it so that the new library is mounted.',
  },
  {
    code: 'driver-released',
    meaning: 'The file of --probe.nvidia.release-file exists: the agent keeps away from the driver, and GPUs are not read.',
    remedy: 'Remove the file once the driver is loaded again.',
  },
  {
    code: 'library-not-found',
    meaning: "The command is there, the driver's library libnvidia-ml is not.",
    remedy:
      'In a container, let the runtime mount it (NVIDIA_DRIVER_CAPABILITIES=utility); on the node, install the library of the same version as the driver.',
  },
  {
    code: 'no-permission',
    meaning: 'The driver refuses: device nodes are missing or closed to the agent.',
    remedy: 'Give the container the device nodes /dev/nvidiactl and /dev/nvidia*, by the container runtime or as privileged.',
  },
  {
    code: 'driver-unreachable',
    meaning: 'The command failed for a reason that the driver does not name; in containers often a device cgroup that was rewritten.',
    remedy: 'Restart the container; where it comes back after daemon-reload, pass the device nodes explicitly.',
  },
  {
    code: 'no-devices',
    meaning: 'NVIDIA hardware is on the bus, and the driver shows none of it.',
    remedy: 'Look in the kernel log for the reason why the driver did not take the GPUs; GPUs passed to virtual machines are not shown.',
  },
  {
    code: 'gpus-unshown',
    meaning: 'The driver announces more GPUs than it shows, and does not say why. Those that are not shown are unknown, not missing.',
    remedy: 'Run nvidia-smi on the node and look for Xids in the kernel log.',
  },
  {
    code: 'gpu-unreadable',
    meaning: 'The driver lists this GPU and cannot read it.',
    remedy: 'Look for Xids of this GPU in the kernel log; mostly a reboot is needed.',
  },
  {
    code: 'inforom-corrupted',
    meaning: 'The command says that the infoROM of some GPU is damaged, and not of which.',
    remedy: 'Run nvidia-smi by hand: a warning names the GPU. Reset it; if the warning stays, the board has to be replaced.',
  },
  {
    code: 'insufficient-power',
    meaning: 'A GPU has no power of its own: its cables are not attached.',
    remedy: 'Check the power cables of the boards.',
  },
  {
    code: 'mig-names-unknown',
    meaning: 'The UUIDs of MIG instances could not be read; they come from nvidia-smi -L alone. Names that were read earlier are kept.',
    remedy: 'Run nvidia-smi -L by hand.',
  },
  {
    code: 'smi-failed',
    meaning: 'The command ended with a status and a text that are not known.',
    remedy: 'Run the command by hand on the node.',
  },
  {
    code: 'smi-garbage',
    meaning: 'What the command printed is not the document that was asked for.',
    remedy: 'Run nvidia-smi -q -x by hand; a wrapper in its place may print something else.',
  },
  {
    code: 'smi-truncated',
    meaning: 'The document ends in the middle: the command was cut off.',
    remedy: 'Raise --probe.nvidia.timeout where the driver is slow, or keep the driver initialised (nvidia-persistenced).',
  },
  {
    code: 'smi-timeout',
    meaning: 'The command did not end in time and was killed.',
    remedy: 'Turn persistence mode on (nvidia-persistenced); if it stays, a GPU or the driver hangs: look in the kernel log.',
  },
  {
    code: 'smi-unreaped',
    meaning: 'A killed command sleeps in the kernel and does not go away. No second one is started meanwhile.',
    remedy: 'The driver hangs. A reboot is the way out.',
  },
  {
    code: 'smi-too-large',
    meaning: 'The command printed more than the agent takes in.',
    remedy: 'Run nvidia-smi -q -x by hand; a wrapper in its place may print something else.',
  },
  {
    code: 'value-unreadable',
    meaning: 'The driver failed to read values of this GPU. They are left out.',
    remedy: 'Look for Xids of this GPU in the kernel log; mostly it needs a reset.',
  },
  {
    code: 'unknown-value',
    meaning: 'The driver printed something for a value that the agent does not know. The value is left out.',
    remedy: 'Report the text with the driver version.',
  },
] as const satisfies readonly ProblemSpec[];

export type ProblemCode = (typeof problems)[number]['code'];
