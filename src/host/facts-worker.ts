import { parentPort } from 'node:worker_threads';
import si from 'systeminformation';

/** The answer of the thread. */
export interface AskedFacts {
  readonly cpu: Pick<si.Systeminformation.CpuData, 'manufacturer' | 'brand' | 'cores'>;
  readonly memory: Pick<si.Systeminformation.MemData, 'total'>;
}

parentPort?.once('message', async () => {
  const [{ manufacturer, brand, cores }, { total }] = await Promise.all([si.cpu(), si.mem()]);
  parentPort?.postMessage({ cpu: { manufacturer, brand, cores }, memory: { total } } satisfies AskedFacts);
});
