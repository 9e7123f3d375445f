import type { Remedy } from '../model/health.ts';
import type { PodResourcesReason } from '../model/pod-resources.ts';
import type { UnresolvedReason } from '../model/snapshot.ts';
import type { Appearance } from './device-view.ts';

/** What the operator should do next. */
export const REMEDY_TEXTS: Readonly<Record<Remedy, string | undefined>> = {
  none: undefined,
  reset: 'Drain and reset the device.',
  reboot: 'Drain and reboot the node.',
  'power-cycle': 'Drain the node, power it off for a minute and on again: a reboot is not enough.',
  replace: 'Replace the device.',
  'check-cable': 'Check cable, transceiver and the remote port.',
  'enable-port': 'Enable the port: use "ip link set <interface> up" on Ethernet, "ibportstate <lid> <port> enable" on InfiniBand.',
  'check-subnet-manager': 'Check that a subnet manager runs in the fabric.',
  'check-cooling': 'Check fans, heat sink and air flow.',
  'check-power': 'Check power supply and power cables.',
  'restart-workload': 'Restart the workload.',
  'reload-driver': 'Drain the node and reload the driver.',
  reseat: 'Reseat the device in its slot.',
  inspect: 'Inspect the node.',
  verify: 'No reading shows it now: restore the mount, right or driver that shows it, or end it with device-agent health accept.',
};

export const STATE_NAMES: Readonly<Record<Appearance, string>> = {
  healthy: 'Healthy',
  degraded: 'Degraded',
  unhealthy: 'Unhealthy',
  unknown: 'Unknown',
  missing: 'Missing',
  pending: 'Pending',
  recovering: 'Recovering',
};

export const KUBELET_REMEDIES: Readonly<Record<PodResourcesReason, string>> = {
  'socket-missing': 'Check that the kubelet runs and that its pod-resources directory is mounted at the path of --podresources.socket.',
  refused: 'The socket exists but no process listens: the kubelet is stopped or restarting.',
  'permission-denied': 'Run the agent as root, or give its user access to the socket.',
  'not-a-socket': 'Check --podresources.socket: the path is not a socket.',
  timeout: 'The kubelet is overloaded or hangs: read its log.',
  'protocol-error': 'Check --podresources.socket: the process that answers there does not speak the PodResources API.',
  'too-large': 'The answer of the kubelet is larger than the agent accepts.',
  'rate-limited': 'Other programs ask the kubelet too often; the agent uses the latest answer.',
  unimplemented: 'Turn on the PodResources API of the kubelet.',
  other: "Read the agent's log.",
};

export const UNRESOLVED_TEXTS: Readonly<Record<UnresolvedReason, string>> = {
  'no-device': 'No probe found a device with this name. Enable its family, or configure which devices belong to the resource.',
  'no-part':
    'The device has no parts now. A driver makes them for a claim, and a reboot removes them: make the pod again, so that the driver prepares its claim.',
  'unknown-part':
    'The name does not tell which part of the device is meant. Let the agent read the files of the DRA driver (--dra.metadata-dir, --cdi.dirs).',
  ambiguous: 'Devices of several families have this name. Configure which devices belong to the resource.',
  'missing-device': 'The device was present before and is now missing.',
};

/** What a sentence says of a device with a condition. A type without a phrase: `has PortDown (1)`. */
export const PHRASES: Readonly<Record<string, string>> = {
  GpuLost: 'is lost',
  PciFunctionGone: 'is gone from the bus',
  FunctionLost: 'is lost',
  // Its counters may still be read.
  DeviceUnreachable: 'has no readable state',
  DriverUnbound: 'is without its driver',
  PortDown: 'has no link',
  HeldPortDown: 'has no link',
  LinkFlapping: 'has a link that flaps',
  RateDegraded: 'has a slow link',
  PcieLinkDegraded: 'has a slow PCIe link',
  ThermalSlowdown: 'is too hot and slow',
  OverTemperature: 'is too hot',
  PowerBrake: 'is slowed down by its power supply',
  EccUncorrectable: 'has uncorrectable memory errors',
  UncorrectableEcc: 'has uncorrectable memory errors',
  RowRemapPending: 'has a memory row to replace',
  NotInitialized: 'did not start',
  RasUncorrectable: 'has uncorrectable errors',
  RowRemapFailure: 'has memory that cannot be repaired',
  WornOut: 'is worn out',
  SpareLow: 'has few spare blocks',
  MediaReadOnly: 'is read-only',
  ControllerDead: 'is dead',
  FirewallTripped: 'is shut off by its firewall',
};
