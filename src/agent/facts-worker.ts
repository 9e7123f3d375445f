import { parentPort, workerData } from 'node:worker_threads';
import { readHostFacts } from '../host/facts.ts';
import { Tree } from '../host/tree.ts';

parentPort?.postMessage(await readHostFacts(new Tree((workerData as { sysfs: string }).sysfs)));
