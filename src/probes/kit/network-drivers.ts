import { ethernetRows } from './ethernet-drivers.ts';
import type { LogRow } from './log-row.ts';
import { dead, givenUp, MLX5, nicLogConditions, reset, timeout } from './network-conditions.ts';
import { startRows } from './pcie/bus-conditions.ts';

/** Lines of network drivers. Adapters are devices of `infiniband` or of `netdev`, so both families use these rows. */
const { FirmwareDead, FirmwareSyndrome, CommandTimeouts, ModuleFault, CableUnplugged, SlotPowerLow, HighTemperature } = nicLogConditions;
const { AdapterResets } = nicLogConditions;

/** Function, line and process, which most macros of mlx5 add. */
const mlx5 = (form: string): RegExp => new RegExp(`^(?:\\w+:\\d+:\\(pid (?<pid>\\d+)\\): )?${form}`);
const of = (file: string) => ({ drivers: ['mlx5_core'], source: `${MLX5}/${file}` });
const mlx4 = (file: string) => ({ drivers: ['mlx4_core'], source: `Linux drivers/net/ethernet/mellanox/mlx4/${file}` });
/** Drivers with transmit queues that the kernel watches. */
const watched = [
  ...['atlantic', 'bnxt_en', 'cxgb4', 'e1000e', 'ena', 'gve', 'hns3', 'i40e', 'iavf', 'ice', 'idpf', 'igb', 'igbvf', 'igc', 'ionic'],
  ...['ixgbe', 'ixgbevf', 'mana', 'mlx4_core', 'mlx5_core', 'qede', 'r8169', 'sfc', 'tg3', 'virtio_net'],
];

const rows: readonly LogRow[] = [
  {
    ...of('main.c'),
    name: 'mlx5-started',
    // A card that is off the bus has 65535 in each place.
    text: mlx5('firmware version: (?!65535\\.)\\d+\\.\\d+\\.\\d+'),
    means: 'the driver was loaded and the firmware answered',
    ends: [FirmwareDead, FirmwareSyndrome, ModuleFault, CableUnplugged, SlotPowerLow],
  },
  {
    ...of('health.c'),
    name: 'mlx5-recovered',
    text: mlx5('health rec?overy succeeded'),
    means: 'the driver recovered the adapter',
    ends: [FirmwareDead, FirmwareSyndrome],
  },
  {
    ...of('health.c'),
    name: 'mlx5-compromised',
    text: mlx5("device's health compromised"),
    means: 'the firmware stopped: its health counter does not move',
    ...dead,
  },
  {
    ...of('health.c'),
    name: 'mlx5-fatal',
    text: mlx5('Fatal error (?<code>\\d+) detected'),
    means: 'the driver found the fatal state {code} of the firmware',
    ...dead,
  },
  {
    ...of('health.c'),
    name: 'mlx5-recovery-failed',
    text: mlx5('health recovery (?:failed|flow aborted)'),
    means: 'the driver could not recover the adapter',
    raises: { condition: FirmwareDead, remedy: 'reboot' },
  },
  {
    ...of('main.c'),
    name: 'mlx5-not-ready',
    text: mlx5('Firmware over \\d+ MS in (?:pre-)?initializing state, aborting'),
    means: 'the firmware did not start in time',
    ...dead,
  },
  {
    ...of('health.c'),
    name: 'mlx5-unrecoverable',
    text: mlx5('synd 0x(?:8|b): '),
    means: 'the firmware reported an unrecoverable hardware error',
    raises: { condition: FirmwareDead, remedy: 'replace' },
  },
  {
    ...of('health.c'),
    name: 'mlx5-syndrome',
    text: mlx5('synd 0x(?<code>[1-9a-f][0-9a-f]?): (?<what>[a-zA-Z ]{1,40})'),
    means: 'the firmware reported the syndrome 0x{code}: {what}',
    raises: { condition: FirmwareSyndrome },
  },
  {
    ...of('cmd.c'),
    name: 'mlx5-command-timeout',
    text: mlx5('(?<command>\\w+)\\(0x[0-9a-f]+\\) timeout\\. Will cause a leak'),
    means: 'the command {command} timed out',
    repeats: CommandTimeouts,
    fault: timeout,
  },
  {
    ...of('cmd.c'),
    name: 'mlx5-lost-completion',
    text: mlx5('cmd\\[\\d+\\]: (?<command>\\w+)\\(0x[0-9a-f]+\\) No done completion'),
    means: 'the command {command} has no completion',
    repeats: CommandTimeouts,
  },
  // The firmware refuses a register that an unprivileged or internal function may not read: `status bad operation`.
  {
    ...of('cmd.c'),
    name: 'mlx5-access-refused',
    text: mlx5('ACCESS_REG\\(0x805\\) op_mod\\(0x[0-9a-f]+\\) failed, status bad '),
    means: 'the firmware refused to read a register, which is no fault',
  },
  {
    ...of('events.c'),
    name: 'mlx5-module-plugged',
    text: mlx5('Port module event: module \\d+, Cable plugged'),
    means: 'a cable was plugged',
    ends: [ModuleFault, CableUnplugged],
  },
  {
    ...of('events.c'),
    name: 'mlx5-module-unplugged',
    text: mlx5('Port module event: module (?<module>\\d+), Cable unplugged'),
    means: 'the cable of module {module} was unplugged',
    raises: { condition: CableUnplugged },
  },
  {
    ...of('events.c'),
    name: 'mlx5-module-hot',
    text: mlx5('Port module event\\[error\\]: module (?<module>\\d+), Cable error, High Temperature'),
    means: 'the module {module} is too hot',
    raises: { condition: ModuleFault, remedy: 'check-cooling' },
  },
  {
    ...of('events.c'),
    name: 'mlx5-module-error',
    text: mlx5('Port module event\\[error\\]: module (?<module>\\d+), Cable error, (?<why>[^,]{1,60})'),
    means: 'the module {module} is refused: {why}',
    raises: { condition: ModuleFault },
  },
  {
    ...of('events.c'),
    name: 'mlx5-slot-power-low',
    text: mlx5('Detected insufficient power on the PCIe slot \\((?<watts>\\d+)W\\)'),
    means: 'the slot offers {watts} W',
    raises: { condition: SlotPowerLow },
  },
  {
    ...of('events.c'),
    name: 'mlx5-slot-power',
    text: mlx5('PCIe slot advertised sufficient power'),
    means: 'the slot offers enough power',
    ends: [SlotPowerLow],
  },
  {
    ...of('events.c'),
    name: 'mlx5-high-temperature',
    text: mlx5('High temperature on sensors with bit set'),
    means: 'sensors are above their limit',
    repeats: HighTemperature,
  },
  {
    name: 'mlx4-started',
    ...mlx4('catas.c and main.c'),
    text: /^(?:mlx4_restart_one was ended, ret=0$|DMFS high rate steer mode is: )/,
    means: 'the driver was loaded and the firmware answered',
    ends: [FirmwareDead],
  },
  {
    name: 'mlx4-internal-error',
    ...mlx4('catas.c, poll_catas'),
    text: /^Internal error (?:detected|mark was detected)/,
    means: 'the firmware stopped with an internal error',
    ...dead,
  },
  {
    name: 'mlx4-restart-failed',
    ...mlx4('catas.c, reset.c and main.c'),
    text: /^(?:Fail to reset HCA|PCI device did not come back after reset|Failed to start FW, aborting|mlx4_restart_one was ended, ret=-)/,
    means: 'the driver could not start the adapter again',
    ...givenUp,
  },
  {
    name: 'mlx4-command-timeout',
    ...mlx4('cmd.c, mlx4_cmd_poll and mlx4_cmd_wait'),
    text: /^command (?<command>0x[0-9a-f]+) timed out \(go bit not cleared\)/,
    means: 'the command {command} timed out',
    repeats: CommandTimeouts,
    fault: timeout,
  },
  {
    name: 'mlx4-hot',
    ...mlx4('eq.c, mlx4_eq_int'),
    text: /^Temperature Threshold was reached! Threshold: (?<limit>\d+) celsius degrees; Current Temperature: (?<now>\d+)/,
    means: 'the adapter is at {now} °C, above its limit of {limit} °C',
    repeats: HighTemperature,
  },
  {
    name: 'mlx4-bad-cable',
    ...mlx4('eq.c, mlx4_eq_int'),
    text: /^(?:Bad cable detected on port (?<port>\d+)|Unsupported cable detected)/,
    means: 'the adapter refuses a cable',
    fault: { type: 'BadCable', severity: 'degraded', remedy: 'check-cable' },
  },
  {
    name: 'bnxt-command-timeout',
    drivers: ['bnxt_en'],
    text: /^QPLIB: cmdq\[0x[0-9a-f]+\]=(?<command>0x[0-9a-f]+) timedout/,
    means: 'the command {command} timed out',
    source: 'Linux drivers/infiniband/hw/bnxt_re/qplib_rcfw.c',
    repeats: CommandTimeouts,
    fault: timeout,
  },
  {
    name: 'bnxt-firmware-stalled',
    drivers: ['bnxt_en'],
    text: /^QPLIB: \w{1,64}: FW STALL Detected\. /,
    means: 'the firmware answers no command of RDMA',
    source: 'Linux drivers/infiniband/hw/bnxt_re/qplib_rcfw.c, bnxt_re_is_fw_stalled',
    ...dead,
  },
  {
    name: 'bnxt-firmware-reset',
    drivers: ['bnxt_en'],
    text: /^(?<severity>Fatal|Non-fatal) firmware reset event, |^Firmware (?<old>fatal|non-fatal) reset event, /,
    means: 'the firmware stopped with an error and starts again ({severity}{old})',
    source: 'Linux drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_async_event_process',
    words: { severity: { Fatal: 'fatal', 'Non-fatal': 'non-fatal' } },
    fault: { type: 'FirmwareReset', severity: 'degraded', remedy: 'restart-workload' },
  },
  {
    name: 'bnxt-started',
    drivers: ['bnxt_en'],
    text: /^.{1,100} found at mem [0-9a-f]+, node addr /,
    means: 'the driver was loaded and the firmware answered',
    source: 'Linux drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_print_device_info',
    ends: [FirmwareDead],
  },
  ...ethernetRows,
  {
    name: 'ionic-firmware-down',
    drivers: ['ionic'],
    text: /^FW Down: Stopping LIFs/,
    means: 'the firmware stopped',
    source: 'Linux drivers/net/ethernet/pensando/ionic/ionic_lif.c',
    ...dead,
  },
  {
    name: 'ionic-restart-failed',
    drivers: ['ionic'],
    text: /^FW Up: LIFs restart failed/,
    means: 'the driver could not set up the adapter after a start of its firmware',
    source: 'Linux drivers/net/ethernet/pensando/ionic/ionic_lif.c',
    ...givenUp,
  },
  {
    name: 'ionic-firmware-up',
    drivers: ['ionic'],
    text: /^FW Up: LIFs restarted/,
    means: 'the firmware works again',
    source: 'Linux drivers/net/ethernet/pensando/ionic/ionic_lif.c',
    ends: [FirmwareDead],
  },
  {
    name: 'ionic-heartbeat-stalled',
    drivers: ['ionic'],
    text: /^FW heartbeat stalled at /,
    means: 'the firmware stopped: its heartbeat does not move',
    source: 'Linux drivers/net/ethernet/pensando/ionic/ionic_dev.c, ionic_heartbeat_check',
    ...dead,
  },
  {
    name: 'ionic-heartbeat-restored',
    drivers: ['ionic'],
    text: /^FW heartbeat restored at /,
    means: 'the heartbeat of the firmware moves again',
    source: 'Linux drivers/net/ethernet/pensando/ionic/ionic_dev.c, ionic_heartbeat_check',
    ends: [FirmwareDead],
  },
  {
    name: 'ionic-command-timeout',
    drivers: ['ionic'],
    text: /^DEVCMD (?<command>\w+) \(\d+\) timeout after \d+ secs/,
    means: 'the command {command} timed out',
    source: 'Linux drivers/net/ethernet/pensando/ionic/ionic_main.c',
    repeats: CommandTimeouts,
    fault: timeout,
  },
  {
    name: 'ena-silent',
    drivers: ['ena'],
    text: /^Keep alive watchdog timeout\./,
    means: 'the adapter gave no sign of life, and the driver resets it',
    source: 'Linux drivers/net/ethernet/amazon/ena/ena_netdev.c, check_for_missing_keep_alive',
    fault: { type: 'FirmwareReset', severity: 'degraded', remedy: 'restart-workload' },
  },
  {
    name: 'ena-reset-failed',
    drivers: ['ena'],
    text: /^Reset attempt failed\. Can not reset the device/,
    means: 'the driver could not reset the adapter',
    source: 'Linux drivers/net/ethernet/amazon/ena/ena_netdev.c, ena_restore_device',
    ...givenUp,
  },
  {
    name: 'ena-started',
    drivers: ['ena'],
    text: /^Elastic Network Adapter \(ENA\) found at mem |^Device reset completed successfully/,
    means: 'the driver set the adapter up',
    source: 'Linux drivers/net/ethernet/amazon/ena/ena_netdev.c, ena_probe and ena_restore_device',
    ends: [FirmwareDead],
  },
  {
    name: 'efa-admin-queue',
    drivers: ['efa'],
    text: /^(?:Admin queue is closed|The device didn't send any completion for admin cmd|The device sent a completion but the driver didn't receive any MSI-X|Wait for completion \(polling\) timeout)/,
    means: 'the admin queue of the adapter stopped: no command reaches it until the driver starts again',
    source: 'Linux drivers/infiniband/hw/efa/efa_com.c',
    ...givenUp,
  },
  {
    name: 'efa-register-timeout',
    drivers: ['efa'],
    text: /^Reading register timed out/,
    means: 'the adapter does not answer reads of its registers',
    source: 'Linux drivers/infiniband/hw/efa/efa_com.c',
    ...dead,
  },
  {
    name: 'efa-started',
    drivers: ['efa'],
    text: /^IB device registered/,
    means: 'the driver was loaded and the adapter answered',
    source: 'Linux drivers/infiniband/hw/efa/efa_main.c',
    ends: [FirmwareDead],
  },
  // Before Linux 6.11 the kernel prints it once in all, and without the device.
  {
    name: 'transmit-hung',
    drivers: watched,
    text: /^NETDEV WATCHDOG: CPU: \d+: transmit queue (?<queue>\d+) timed out/,
    means: 'transmit queue {queue} stood still, and the driver resets it',
    source: 'Linux net/sched/sch_generic.c, dev_watchdog',
    repeats: AdapterResets,
    fault: reset,
  },
];

/** Drivers of functions on the PCI bus. */
const DRIVERS =
  'mlx5_core mlx4_core ice i40e iavf ixgbe ixgbevf igb igc idpf hfi1 bnxt_en tg3 ena efa gve ionic qede sfc cxgb4 hinic3 enic nfp'.split(
    ' ',
  );

export const nicLogRows: readonly LogRow[] = [...startRows(DRIVERS), ...rows.map((row) => ({ ...row, boundTo: row.drivers }))];
