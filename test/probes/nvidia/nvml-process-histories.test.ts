import { expect, it } from 'vitest';
import { repetitions } from '../../support/repetitions.ts';
import { seeded } from '../../support/seeded.ts';
import { hopper, type ScriptedGpu } from './scripted-script.ts';
import { started } from './started.ts';

type Pick = (below: number) => number;

/** What the driver knows at one read. `samples`: percent of the time, keyed by PID; it tells no more of the processes. */
interface Moment {
  /** `C` runs by itself or is an MPS server, `M` is a client of one. */
  readonly processes: ReadonlyMap<number, 'C' | 'M'>;
  readonly samples: ReadonlyMap<number, number>;
  /** Codes of the newer and of the older function of shares, and of the list of clients. 0 is success. */
  readonly codes: readonly [newer: number, older: number, clients: number];
}

const PIDS = [11, 12, 13, 14, 15];
/** A sample of nobody: the stand-in supports no shares without one. */
const NOBODY = 99;

function momentOf(pick: Pick): Moment {
  const hasMps = pick(2) === 0;
  const processes = new Map(
    PIDS.filter(() => pick(3) > 0).map((pid): [number, 'C' | 'M'] => [pid, hasMps && pid !== PIDS[0] && pick(2) === 0 ? 'M' : 'C']),
  );
  // The driver gives the time of clients to the server, and tells nothing of a process that did nothing.
  const samples = new Map([...processes].filter(([, kind]) => kind === 'C' && pick(2) === 0).map(([pid]) => [pid, 1 + pick(100)]));
  return { processes, samples, codes: [[0, 0, 3, 13, 25, 999][pick(6)] ?? 0, [0, 0, 3][pick(3)] ?? 0, [0, 0, 0, 3, 999][pick(5)] ?? 0] };
}

/** A share is known by a sample, or as 0 where its absence can only mean that the process did nothing. */
function sharesOf({ processes, samples, codes: [newer, older, clients] }: Moment): Record<number, number | undefined> {
  const isAnswered = newer === 0 || ([3, 13, 25].includes(newer) && older === 0);
  const listed = [...processes].filter(([, kind]) => kind === 'C' || clients === 0);
  const areThereClients = clients === 999 || listed.some(([, kind]) => kind === 'M');
  return Object.fromEntries(
    listed.map(([pid]) => {
      const sample = samples.get(pid);
      if (!isAnswered) return [pid, undefined];
      return [pid, sample === undefined ? (areThereClients ? undefined : 0) : sample / 100];
    }),
  );
}

function scripted({ processes, samples, codes: [newer, older, clients] }: Moment, atUs: number): ScriptedGpu {
  const fails = [
    ['nvmlDeviceGetProcessesUtilizationInfo', newer],
    ['nvmlDeviceGetProcessUtilization', older],
    ['nvmlDeviceGetMPSComputeRunningProcesses_v3', clients],
    ['nvmlDeviceGetMPSComputeRunningProcesses_v2', clients],
  ].flatMap(([name, code]) => (code === 0 ? [] : [`fail.${name} = ${code}`]));
  return {
    ...hopper(0),
    processes: [...processes].map(([pid, kind]) => `${kind} ${pid} 1048576`),
    lines: [...[...samples, [NOBODY, 1]].map(([pid, percent]) => `share = ${pid} ${atUs} ${percent} 0 0 0 0 0`), ...fails],
  };
}

const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? repetitions(15, 60));
const READS = 4;

it(`the share of a process is known only by what the driver told (${HISTORIES} histories)`, async () => {
  for (let seed = 1; seed <= HISTORIES; seed += 1) {
    const pick = seeded(seed);
    let moment = momentOf(pick);
    const { node, at } = started(scripted(moment, 1));
    for (let read = 0; read < READS; read += 1) {
      const { reports } = await at(read * 30_000);
      const told = Object.fromEntries((reports[0]?.read?.processes ?? []).map(({ pid, utilization }) => [pid, utilization?.gpu]));
      expect(told, `seed ${seed}, read ${read}`).toEqual(sharesOf(moment));
      moment = momentOf(pick);
      node.write({ gpus: [scripted(moment, read + 2)] });
    }
  }
});
