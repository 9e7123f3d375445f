import { hours, minutes } from '../../model/duration.ts';
import { logCondition, logGrowth } from './log-row.ts';
import { startFailed } from './pcie/bus-conditions.ts';

export const MLX5 = 'Linux drivers/net/ethernet/mellanox/mlx5/core';
const ENDS = 'ends when the driver starts again or reports the recovery';

/** Conditions that lines of network drivers raise. Adapters are devices of `infiniband` or of `netdev`, so both families declare them. */
export const nicLogConditions = {
  StartFailed: startFailed,
  FirmwareDead: logCondition({
    type: 'FirmwareDead',
    severity: 'fatal',
    meaning:
      'The firmware of the adapter does not answer, or the driver gave the adapter or its function up, although its link can be up and its counters quiet.',
    remedy: 'reset',
    source: `kernel log: ${MLX5}/health.c and main.c, catas.c of mlx4, qplib_rcfw.c of bnxt_re, bnxt.c, ice_main.c, i40e_main.c, iavf_main.c, ionic_lif.c and ionic_dev.c, ena_netdev.c, efa_com.c; ${ENDS}`,
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
    source: `kernel log: ${MLX5}/cmd.c, cmd.c of mlx4, qplib_rcfw.c of bnxt_re, bnxt_hwrm.c, ionic_main.c`,
    growth: 0,
    windowMs: hours(1),
  }),
  ModuleFault: logCondition({
    type: 'ModuleFault',
    severity: 'degraded',
    meaning: 'The adapter refuses the cable or module of a port, or the module is defective or too hot.',
    remedy: 'check-cable',
    source: `kernel log: ${MLX5}/events.c, port_module; ice_main.c, i40e_main.c; ends when the module is plugged again, the link is up, or the driver starts`,
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
    source: `kernel log: ${MLX5}/events.c, temp_warn; eq.c of mlx4`,
    growth: 0,
    windowMs: hours(1),
  }),
  AdapterResets: logGrowth({
    type: 'AdapterResets',
    severity: 'degraded',
    meaning:
      'Transmit queues or the RDMA engine of the adapter stop again and again, and the driver resets them. Connections break each time.',
    remedy: 'inspect',
    source: 'kernel log: Linux net/sched/sch_generic.c, dev_watchdog; drivers/infiniband/hw/irdma/icrdma_if.c; the limit is our choice',
    growth: 3,
    windowMs: hours(1),
  }),
  FunctionRefused: logGrowth({
    type: 'FunctionRefused',
    severity: 'degraded',
    meaning:
      'The card refuses requests of the virtual function, or its driver starts again and again. The function does not work, or loses its settings.',
    remedy: 'inspect',
    source:
      'kernel log: Linux drivers/net/ethernet/intel/iavf, iavf_virtchnl.c and iavf_main.c; the limit is our choice: a pod that starts causes few such lines',
    growth: 20,
    windowMs: minutes(10),
  }),
};

/** What several drivers say of the firmware, and of work that was lost. */
export const timeout = { type: 'CommandTimeout', severity: 'degraded', remedy: 'restart-workload' } as const;
export const dead = { raises: { condition: nicLogConditions.FirmwareDead } };
/** The hardware may be sound: a start of the driver sets it up again. */
export const givenUp = { raises: { condition: nicLogConditions.FirmwareDead, remedy: 'reload-driver' } } as const;
export const reset = { type: 'AdapterReset', severity: 'degraded', remedy: 'restart-workload' } as const;
