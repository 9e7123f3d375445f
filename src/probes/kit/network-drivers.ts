import { hours } from '../../model/duration.ts';
import { type LogRow, logCondition, logGrowth } from './log-row.ts';

/** What the drivers of network adapters print. An adapter is a device of `infiniband` or of `netdev`, so both use these rows. */
const MLX5 = 'Linux drivers/net/ethernet/mellanox/mlx5/core';
const ENDS = 'ends when the driver starts again or reports the recovery';

export const nicLogConditions = {
  FirmwareDead: logCondition({
    type: 'FirmwareDead',
    severity: 'fatal',
    meaning: 'The firmware of the adapter does not answer, although its link can be up and its counters quiet.',
    remedy: 'reset',
    source: `kernel log: ${MLX5}/health.c, bnxt_en, ice, ionic_lif.c, efa_com.c; ${ENDS}`,
  }),
  FirmwareSyndrome: logCondition({
    type: 'FirmwareSyndrome',
    severity: 'degraded',
    meaning: 'The firmware of the adapter reported an error of its own.',
    remedy: 'inspect',
    source: `kernel log: ${MLX5}/health.c, print_health_info; ${ENDS}`,
  }),
  CommandTimeouts: logGrowth({
    type: 'CommandTimeouts',
    severity: 'degraded',
    meaning: 'Commands to the firmware of the adapter time out. The work that waits for them hangs or fails.',
    remedy: 'inspect',
    source: `kernel log: ${MLX5}/cmd.c, qplib_rcfw.c of bnxt_re, ionic_main.c`,
    growth: 0,
    windowMs: hours(1),
  }),
  ModuleFault: logCondition({
    type: 'ModuleFault',
    severity: 'degraded',
    meaning: 'The adapter refuses the cable or module of a port, or the module is defective or too hot.',
    remedy: 'check-cable',
    source: `kernel log: ${MLX5}/events.c, port_module; ends when the module is plugged again or the driver starts`,
  }),
  CableUnplugged: logCondition({
    type: 'CableUnplugged',
    severity: 'info',
    meaning: 'The cable or module of a port was removed. Whether the port must have one is said by PortDown.',
    remedy: 'check-cable',
    source: `kernel log: ${MLX5}/events.c, port_module`,
  }),
  SlotPowerLow: logCondition({
    type: 'SlotPowerLow',
    severity: 'info',
    meaning: 'The slot offers less power than the adapter can draw. Boards that supply the adapter otherwise report this at each start.',
    remedy: 'check-power',
    source: `kernel log: ${MLX5}/events.c, mlx5_pcie_event`,
  }),
  HighTemperature: logGrowth({
    type: 'HighTemperature',
    severity: 'degraded',
    meaning: 'The adapter reported that sensors are above their limit.',
    remedy: 'check-cooling',
    source: `kernel log: ${MLX5}/events.c, temp_warn`,
    growth: 0,
    windowMs: hours(1),
  }),
};

const { FirmwareDead, FirmwareSyndrome, CommandTimeouts, ModuleFault, CableUnplugged, SlotPowerLow, HighTemperature } = nicLogConditions;

/** Function, line and process, which most macros of mlx5 add. */
const mlx5 = (form: string): RegExp => new RegExp(`^(?:\\w+:\\d+:\\(pid (?<pid>\\d+)\\): )?${form}`);
const of = (file: string) => ({ drivers: ['mlx5_core'], source: `${MLX5}/${file}` });
const timeout = { type: 'CommandTimeout', severity: 'degraded', remedy: 'restart-workload' } as const;
const dead = { raises: { condition: FirmwareDead } };

export const nicLogRows: readonly LogRow[] = [
  {
    ...of('main.c'),
    name: 'mlx5-started',
    text: mlx5('firmware version: \\d+\\.\\d+\\.\\d+'),
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
    name: 'bnxt-command-timeout',
    drivers: ['bnxt_en'],
    text: /^QPLIB: cmdq\[0x[0-9a-f]+\]=(?<command>0x[0-9a-f]+) timedout/,
    means: 'the command {command} timed out',
    source: 'Linux drivers/infiniband/hw/bnxt_re/qplib_rcfw.c',
    repeats: CommandTimeouts,
    fault: timeout,
  },
  {
    name: 'ice-rebuild-failed',
    drivers: ['ice'],
    text: /^Rebuild failed, unload and reload driver/,
    means: 'the driver could not set up the adapter after a reset',
    source: 'Linux drivers/net/ethernet/intel/ice/ice_main.c',
    raises: { condition: FirmwareDead, remedy: 'reload-driver' },
  },
  {
    name: 'ice-started',
    drivers: ['ice'],
    text: /^The DDP package was successfully loaded: /,
    means: 'the driver was loaded and the firmware answered',
    source: 'Linux drivers/net/ethernet/intel/ice/ice_main.c',
    ends: [FirmwareDead],
  },
  {
    name: 'irdma-queue-error',
    drivers: ['ice', 'irdma'],
    text: /^abnormal ae_id = (?<event>0x[0-9a-f]+) bool qp=\d/,
    means: 'the adapter ended a queue pair with the event {event}',
    source: 'Linux drivers/infiniband/hw/irdma/hw.c',
    fault: { type: 'QueueError', severity: 'info', remedy: 'restart-workload' },
  },
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
    raises: { condition: FirmwareDead, remedy: 'reload-driver' },
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
    name: 'ionic-command-timeout',
    drivers: ['ionic'],
    text: /^DEVCMD (?<command>\w+) \(\d+\) timeout after \d+ secs/,
    means: 'the command {command} timed out',
    source: 'Linux drivers/net/ethernet/pensando/ionic/ionic_main.c',
    repeats: CommandTimeouts,
    fault: timeout,
  },
  {
    name: 'efa-admin-queue',
    drivers: ['efa'],
    text: /^(?:Admin queue is closed|The device didn't send any completion for admin cmd|The device sent a completion but the driver didn't receive any MSI-X|Wait for completion \(polling\) timeout)/,
    means: 'the admin queue of the adapter stopped: no command reaches it until the driver starts again',
    source: 'Linux drivers/infiniband/hw/efa/efa_com.c',
    raises: { condition: FirmwareDead, remedy: 'reload-driver' },
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
];
