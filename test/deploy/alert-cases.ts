/** One history of an alert: the series, and minutes at which it must be silent, must fire, and must have ended. */
export interface AlertCase {
  readonly alert: string;
  /** Values in the notation of promtool, one each minute. */
  readonly series: Readonly<Record<string, string>>;
  readonly quietAt: number;
  /** How often the rules are evaluated. Default: each minute. */
  readonly every?: string;
  readonly firesAt: number;
  readonly endedAt: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Annotations that the firing alert must have. */
  readonly annotations?: Readonly<Record<string, string>>;
}

const text = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',');

/** What a scrape adds: the pod of the agent. */
const TARGET = { node: 'n1', instance: '10.0.0.1:9835', job: 'agent', namespace: 'monitoring', pod: 'agent-1', container: 'agent' };

export const told = (metric: string, labels: Readonly<Record<string, string>> = {}, target: object = TARGET): string =>
  `${metric}{${text({ ...target, ...labels })}}`;

const condition = (device: string, type: string, more: Readonly<Record<string, string>>): string =>
  told('device_health_condition', { device, condition: type, ...more });

const info = (device: string, family: string, more: Readonly<Record<string, string>> = {}): string =>
  told('device_info', { device, family, kind: 'x', model: 'm', ...more });

/** A scrape that does not honour labels renames those of the holder. */
const held = (device: string, metric = 'container_device_allocation', more: Readonly<Record<string, string>> = {}): string =>
  told(metric, {
    ...{ exported_namespace: 'ml', exported_pod: 'train-0', exported_container: 'main', resource: 'nvidia.com/gpu', device, ...more },
  });

const LOST = { class: 'latched', reason: 'FallenOff', severity: 'fatal', remedy: 'reboot' };
const DOWN = { class: 'self-clearing', part: '1', reason: 'LinkPolling', severity: 'fatal', remedy: 'check-cable' };
const HOT = { class: 'self-clearing', reason: 'TooHot', severity: 'degraded', remedy: 'check-cooling' };
const ERRORS = { class: 'rate', part: '1', reason: 'CounterGrows', severity: 'degraded', remedy: 'check-cable' };
const ON_GPU = { node: 'n1', device: 'GPU-1' };
const ON_HCA = { node: 'n1', device: 'mlx5_0' };
const HOLDER = 'Held by ml/train-0/main.';

const labelsOf = ({ severity: _, ...labels }: Readonly<Record<string, string>>): Readonly<Record<string, string>> => labels;

export const cases: readonly AlertCase[] = [
  {
    alert: 'DeviceUnhealthy',
    series: {
      [condition('GPU-1', 'GpuFallenOffBus', LOST)]: '_x10 1x20 stale _x40',
      [info('GPU-1', 'nvidia', { model: 'NVIDIA H100', pci_address: '0000:3b:00.0' })]: '1x80',
      [told('device_nvidia_info', { device: 'GPU-1', index: '3' })]: '1x80',
      [info('MIG-1', 'nvidia', { parent: 'GPU-1' })]: '1x80',
      // The instance of the lost GPU has the same fault: only the GPU is told.
      [condition('MIG-1', 'GpuFallenOffBus', LOST)]: '_x10 1x20 stale _x40',
      [told('device_health', { device: 'GPU-1', state: 'unhealthy' })]: '0x10 1x20 0x40',
      [held('MIG-1')]: '1x80',
      // A fault that does not take the device out of service, and one that passes within the minute.
      [condition('GPU-2', 'RowRemapPending', { ...LOST, severity: 'degraded' })]: '1x13 stale _x60',
      [condition('GPU-3', 'GpuLost', LOST)]: '_x5 1 stale _x60',
    },
    ...{ quietAt: 6, firesAt: 15, endedAt: 40 },
    labels: { ...ON_GPU, condition: 'GpuFallenOffBus', ...labelsOf(LOST), severity: 'critical' },
    annotations: {
      summary: 'GPU 3 (NVIDIA H100, 0000:3b:00.0) on node n1 is out of service: GpuFallenOffBus.',
      holder: HOLDER,
      remedy: 'Drain and reboot the node.',
      since: '2030-03-17 17:46:40 UTC',
      record_url: 'https://n1.devices.example/incidents/latest?device=GPU-1',
      runbook_url: 'https://n1.devices.example/docs/runbooks/devices.md?node=n1&device=GPU-1#deviceunhealthy',
    },
  },
  {
    alert: 'DeviceUnhealthy',
    series: {
      [condition('GPU-1', 'RasFatal', { ...LOST, part: 'umc', remedy: 'verify' })]: '_x10 1x20 stale _x40',
      [told('device_health_condition_unverified_since_timestamp_seconds', { device: 'GPU-1', condition: 'RasFatal', part: 'umc' })]:
        '1900000000x80',
      [info('GPU-1', 'amdgpu')]: '1x80',
    },
    ...{ quietAt: 6, firesAt: 15, endedAt: 40 },
    labels: { ...ON_GPU, condition: 'RasFatal', ...labelsOf({ ...LOST, part: 'umc', remedy: 'verify' }), severity: 'critical' },
    annotations: {
      description:
        'RasFatal (umc): FallenOff. It was seen before; no reading shows whether it still holds since 2030-03-17 17:46:40 UTC. The fault stays until an operator acts.',
      remedy: 'No reading shows it now: restore the mount, right or driver that shows it, or end it with device-agent health accept.',
    },
  },
  {
    alert: 'DeviceOutOfService',
    series: {
      [condition('mlx5_0', 'PortDown', DOWN)]: '_x10 1x20 stale _x40',
      [held('mlx5_0')]: '1x80',
      // The container holds a second id of the device.
      [held('mlx5_0', 'container_device_allocation', { device_id: 'mlx5_0-1' })]: '1x80',
      [info('mlx5_0', 'infiniband')]: '1x80',
      [info('mlx5_1', 'infiniband')]: '1x80',
      [condition('mlx5_1', 'PortDown', DOWN)]: '_x5 1 stale _x60',
      [condition('fpga-1', 'UpdateRunning', { ...DOWN, remedy: 'none' })]: '1x80',
    },
    ...{ quietAt: 8, firesAt: 15, endedAt: 45 },
    labels: { ...ON_HCA, condition: 'PortDown', ...labelsOf(DOWN), severity: 'critical' },
    annotations: {
      description: 'PortDown (1): LinkPolling. The device returns to service when the condition ends.',
      holder: HOLDER,
      remedy: 'Check cable, transceiver and the remote port.',
    },
  },
  {
    alert: 'DeviceMissing',
    series: {
      [condition('GPU-1', 'DeviceMissing', { ...LOST, reason: 'NotListed', remedy: 'inspect' })]: '_x10 1x20 stale _x40',
      [info('GPU-1', 'nvidia')]: '1x80',
      // Its pod failed with it.
      [held('GPU-1')]: '1x9 stale _x70',
      [condition('GPU-2', 'GpuLost', LOST)]: '1x80',
    },
    ...{ quietAt: 8, firesAt: 15, endedAt: 40 },
    labels: { ...ON_GPU, condition: 'DeviceMissing', class: 'latched', reason: 'NotListed', remedy: 'inspect', severity: 'critical' },
    annotations: { holder: 'No container holds it; in the last hour: ml/train-0/main.' },
  },
  {
    alert: 'DeviceExpectedMissing',
    series: {
      [told('device_agent_expected_devices', { family: 'nvidia' })]: '8x80',
      [told('device_agent_present_devices', { family: 'nvidia' })]: '8x10 7x20 8x40',
      [told('device_agent_probe_success', { family: 'nvidia' })]: '1x80',
      [told('device_agent_devices', { family: 'nvidia', state: 'missing' })]: '0x80',
      // A family with enough devices, and one of which the alert DeviceMissing tells the device.
      [told('device_agent_expected_devices', { family: 'fpga' })]: '1x80',
      [told('device_agent_present_devices', { family: 'fpga' })]: '2x80',
      [told('device_agent_expected_devices', { family: 'infiniband' })]: '2x80',
      [told('device_agent_present_devices', { family: 'infiniband' })]: '1x80',
      [told('device_agent_devices', { family: 'infiniband', state: 'missing' })]: '1x80',
    },
    ...{ quietAt: 14, firesAt: 20, endedAt: 40 },
    labels: { node: 'n1', family: 'nvidia', severity: 'critical' },
  },
  {
    alert: 'DeviceDegraded',
    series: {
      [condition('GPU-1', 'ThermalSlowdown', HOT)]: '_x10 1x30 stale _x60',
      [condition('GPU-2', 'ThermalSlowdown', HOT)]: '_x5 1x5 stale _x60',
      [info('GPU-1', 'nvidia')]: '1x100',
      [info('MIG-1', 'nvidia', { parent: 'GPU-1' })]: '1x100',
      [condition('MIG-1', 'ThermalSlowdown', HOT)]: '_x10 1x30 stale _x60',
      [told('device_health', { device: 'GPU-1', state: 'degraded' })]: '0x10 1x30 0x60',
    },
    ...{ quietAt: 20, firesAt: 30, endedAt: 70 },
    labels: { ...ON_GPU, condition: 'ThermalSlowdown', ...labelsOf(HOT), severity: 'warning' },
    annotations: { remedy: 'Check fans, heat sink and air flow.' },
  },
  {
    alert: 'DeviceErrorsGrow',
    series: {
      [condition('mlx5_0', 'SymbolErrors', ERRORS)]: '_x10 1x20 stale _x60',
      [condition('mlx5_1', 'ReceiveErrors', { ...ERRORS, severity: 'info' })]: '1x100',
    },
    ...{ quietAt: 8, firesAt: 15, endedAt: 80 },
    labels: { ...ON_HCA, condition: 'SymbolErrors', ...labelsOf(ERRORS), severity: 'warning' },
  },
  {
    alert: 'DeviceUnknown',
    series: {
      [told('device_health', { device: 'mlx5_0', state: 'unknown' })]: '0x10 1x20 0x40',
      [info('mlx5_0', 'infiniband')]: '1x80',
      [told('device_agent_probe_success', { family: 'infiniband' })]: '1x80',
      // Its probe reads nothing: that is another alert.
      [told('device_health', { device: 'GPU-1', state: 'unknown' })]: '1x80',
      [info('GPU-1', 'nvidia')]: '1x80',
      [told('device_agent_probe_success', { family: 'nvidia' })]: '0x80',
      // It is missing: that is another alert.
      [told('device_health', { device: 'mlx5_9', state: 'unknown' })]: '1x80',
      [told('device_present', { device: 'mlx5_9' })]: '0x80',
    },
    ...{ quietAt: 14, firesAt: 20, endedAt: 40 },
    labels: { ...ON_HCA, severity: 'warning' },
    annotations: { summary: 'The health of mlx5_0 (m) on node n1 is unknown.', holder: 'No container is known to hold it.' },
  },
  {
    alert: 'DeviceUnresolved',
    series: {
      [held('', 'container_device_unresolved', { device_id: 'zzz', reason: 'no-device' })]: '_x10 1x30 stale _x40',
      [held('', 'container_device_unresolved', { resource: 'short.example/x', device_id: 'a', reason: 'no-device' })]: '1x5 stale _x60',
    },
    ...{ quietAt: 15, firesAt: 25, endedAt: 60 },
    labels: { node: 'n1', resource: 'nvidia.com/gpu', reason: 'no-device', severity: 'warning' },
    annotations: { holder: HOLDER, summary: '1 allocated ids of nvidia.com/gpu on node n1 belong to no device that the agent knows.' },
  },
  {
    alert: 'DeviceAllocationRefused',
    series: {
      [told('device_agent_plugin_allocations_total', { resource: 'x.y/hca', result: 'unhealthy' })]: '0x10 3x80',
      [told('device_agent_plugin_allocations_total', { resource: 'x.y/hca', result: 'ok' })]: '0+1x90',
    },
    ...{ quietAt: 8, firesAt: 15, endedAt: 60 },
    labels: { node: 'n1', resource: 'x.y/hca', result: 'unhealthy', severity: 'warning' },
  },
  {
    alert: 'DeviceRepeatOffender',
    series: {
      // Another pod of the agent goes on with the number.
      [told('device_unhealthy_incidents', { device: 'GPU-1' })]: '_x5 1x5 2x40 stale',
      [told('device_unhealthy_incidents', { device: 'GPU-1' }, { ...TARGET, pod: 'agent-2' })]: '_x51 3x40 2x100',
      [info('GPU-1', 'nvidia')]: '1x200',
      [held('GPU-1')]: '1x200',
      // A part fails each time with its whole.
      [info('MIG-1', 'nvidia', { parent: 'GPU-1' })]: '1x200',
      [told('device_unhealthy_incidents', { device: 'MIG-1' })]: '_x5 1x5 3x190',
      [told('device_unhealthy_incidents', { device: 'GPU-2' })]: '_x5 1x5 2x190',
    },
    ...{ quietAt: 30, firesAt: 60, endedAt: 120 },
    labels: { ...ON_GPU, severity: 'warning' },
    annotations: { summary: 'GPU-1 (m) on node n1 was out of service 3 times within a week.', holder: HOLDER },
  },
  {
    alert: 'DeviceIdle',
    series: {
      [held('GPU-1')]: '1x600',
      [info('GPU-1', 'nvidia')]: '1x600',
      [told('device_utilization_ratio', { device: 'GPU-1', engine: 'gpu' })]: '0.5x10 0x300 0.9x290',
      // Busy, and idle but free.
      [held('GPU-2')]: '1x600',
      // Idle, and allocated for less than two hours.
      [held('GPU-4')]: '_x130 1x115 stale',
      [told('device_utilization_ratio', { device: 'GPU-4', engine: 'gpu' })]: '0x600',
      [told('device_utilization_ratio', { device: 'GPU-2', engine: 'gpu' })]: '0.2x600',
      [told('device_utilization_ratio', { device: 'GPU-3', engine: 'gpu' })]: '0x600',
    },
    ...{ quietAt: 100, firesAt: 250, endedAt: 320 },
    labels: { ...ON_GPU, severity: 'info' },
    annotations: { holder: HOLDER },
  },
  {
    alert: 'DeviceAgentDown',
    series: {
      [told('up')]: '1x10 0x20 1x40',
      [told('device_agent_build_info', { version: '1' })]: '1x10 stale _x20 1x40',
      // Another exporter.
      [told('up', {}, { job: 'other', instance: 'x', node: 'n1' })]: '0x80',
    },
    ...{ quietAt: 14, firesAt: 20, endedAt: 40 },
    labels: { node: 'n1', job: 'agent', instance: '10.0.0.1:9835', severity: 'warning' },
    annotations: { summary: 'The agent on node n1 does not answer.' },
  },
  {
    // It does not end while the target is there and does not answer, and ends when the node is deleted.
    alert: 'DeviceAgentDown',
    series: { [told('up')]: '1x10 0x1900 stale', [told('device_agent_build_info', { version: '1' })]: '1x10 stale' },
    ...{ every: '15m', quietAt: 15, firesAt: 1_800, endedAt: 1_920 },
    labels: { node: 'n1', job: 'agent', instance: '10.0.0.1:9835', severity: 'warning' },
  },
  {
    alert: 'DeviceAgentGone',
    series: {
      [told('device_agent_build_info', { version: '1' })]: '1x10 stale _x30 1x40',
      // A node that was removed, as kube-state-metrics tells.
      [told('device_agent_build_info', { version: '1' }, { node: 'n2', job: 'agent', instance: 'b' })]: '1x10 stale _x90',
      'kube_node_info{node="n1"}': '1x100',
    },
    ...{ quietAt: 18, firesAt: 30, endedAt: 60 },
    labels: { node: 'n1', severity: 'warning' },
  },
  {
    alert: 'DeviceAgentRestarts',
    series: {
      [told('device_agent_build_info', { version: '1' })]: '1x150',
      // Each start is later than the one before; a container that begins anew has the same address.
      [told('process_start_time_seconds')]: '0x10 600x4 900x4 1200x4 1500x120',
      // Two rollouts. Two pods share the labels of the node meanwhile, and scrapes show them in turn.
      [told('process_start_time_seconds', {}, { node: 'n2', job: 'agent', instance: 'n2' })]: '0x10 600 0 600 0 600x30 2700 600 2700x100',
      [told('device_agent_build_info', { version: '1' }, { node: 'n2', job: 'agent', instance: 'n2' })]: '1x150',
      // Another program of the node.
      [told('process_start_time_seconds', {}, { node: 'n3', job: 'other', instance: 'x' })]: '0+60x150',
    },
    ...{ quietAt: 24, firesAt: 28, endedAt: 100 },
    labels: { node: 'n1', severity: 'warning' },
    annotations: { summary: 'The agent on node n1 started 4 times within an hour.' },
  },
  {
    alert: 'DevicePublisherWithoutAgent',
    series: {
      'kube_node_status_condition{node="n1",condition="DevicesUnknown",status="true"}': '0x10 1x30 0x40',
      [told('device_agent_build_info', { version: '1' })]: '1x80',
      [told('device_agent_devices', { state: 'unknown', family: 'nvidia' })]: '0x80',
      // The agent says unknown, too.
      'kube_node_status_condition{node="n2",condition="DevicesUnknown",status="true"}': '1x80',
      [told('device_agent_devices', { state: 'unknown', family: 'nvidia' }, { node: 'n2', job: 'agent', instance: 'b' })]: '1x80',
      // The agent has no alert yet, and will have one of its own.
      'kube_node_status_condition{node="n3",condition="DevicesUnknown",status="true"}': '_x4 1x80',
      [told('device_agent_build_info', { version: '1' }, { node: 'n3', job: 'agent', instance: 'c' })]: '1x3 stale _x80',
    },
    ...{ quietAt: 19, firesAt: 25, endedAt: 50 },
    labels: { node: 'n1', severity: 'warning' },
  },
  {
    alert: 'DeviceAgentStandsStill',
    series: {
      [told('device_agent_snapshot_timestamp_seconds')]: '0+60x10 600x20 1860+60x60',
      [told('device_agent_snapshot_timestamp_seconds', {}, { node: 'n2', job: 'agent', instance: 'b' })]: '0+60x100',
    },
    ...{ quietAt: 10, firesAt: 25, endedAt: 50 },
    labels: { node: 'n1', severity: 'warning' },
    annotations: { summary: 'The data of the agent on node n1 is 15m 0s old.' },
  },
  {
    alert: 'DeviceAgentCannotAskKubelet',
    series: { [told('device_agent_podresources_up')]: '1x10 0x20 1x40' },
    ...{ quietAt: 14, firesAt: 20, endedAt: 40 },
    labels: { node: 'n1', severity: 'warning' },
  },
  {
    alert: 'DeviceProbeFails',
    series: {
      [told('device_agent_probe_success', { family: 'nvidia' })]: '1x10 0x20 1x40',
      [told('device_agent_probe_success', { family: 'fpga' })]: '1x80',
      // Somebody asked for its driver, for longer than this takes.
      [told('device_agent_probe_success', { family: 'of a released driver' })]: '0x80',
      [info('GPU-2', 'of a released driver')]: '1x80',
      [told('device_nvidia_driver_release_end_timestamp_seconds', { device: 'GPU-2' })]: '86400x80',
      // Somebody asked for this one until the first failure of the other.
      [info('GPU-3', 'nvidia')]: '1x80',
      [told('device_nvidia_driver_release_end_timestamp_seconds', { device: 'GPU-3' })]: '600x80',
    },
    ...{ quietAt: 14, firesAt: 20, endedAt: 40 },
    labels: { node: 'n1', family: 'nvidia', severity: 'warning' },
  },
  {
    alert: 'DevicePluginNotFollowed',
    series: {
      [told('device_agent_plugin_registered', { resource: 'x.y/hca' })]: '1x10 0x20 1x40',
      [told('device_agent_plugin_registered', { resource: 'x.y/gpu' })]: '1x80',
    },
    ...{ quietAt: 11, firesAt: 20, endedAt: 40 },
    labels: { node: 'n1', resource: 'x.y/hca', severity: 'critical' },
  },
  {
    alert: 'DevicePluginOfferDiffers',
    series: {
      [told('device_agent_plugin_differing_devices', { resource: 'x.y/hca' })]: '0x10 3x20 0x40',
      // The other agent of a rollout ends, and this one corrects the kubelet.
      [told('device_agent_plugin_differing_devices', { resource: 'x.y/gpu' })]: '0x10 5 0x10 5 0x60',
    },
    ...{ quietAt: 11, firesAt: 20, endedAt: 40 },
    labels: { node: 'n1', resource: 'x.y/hca', severity: 'critical' },
  },
  {
    alert: 'DeviceAgentConfigRejected',
    series: {
      [told('device_agent_config_last_reload_successful')]: '1x10 0x20 1x40',
      [told('device_agent_web_config_last_reload_successful')]: '1x80',
    },
    ...{ quietAt: 14, firesAt: 20, endedAt: 40 },
    labels: { node: 'n1', severity: 'warning' },
  },
  {
    alert: 'DeviceAgentSocketAway',
    series: {
      [told('device_agent_socket_up', { socket: 'control' })]: '1x10 0x20 1x40',
      [told('device_agent_socket_up', { socket: 'dra' })]: '1x80',
    },
    ...{ quietAt: 14, firesAt: 20, endedAt: 40 },
    labels: { node: 'n1', socket: 'control', severity: 'warning' },
  },
  {
    alert: 'DeviceAgentWithoutNode',
    series: {
      [told('device_agent_build_info', { version: '1' }, { job: 'plain', instance: 'a' })]: '_x10 1x40 stale _x40',
      [told('device_agent_build_info', { version: '1' })]: '1x100',
    },
    ...{ quietAt: 20, firesAt: 40, endedAt: 70 },
    labels: { job: 'plain', severity: 'info' },
  },
];
