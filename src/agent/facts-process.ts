import cron from 'node-cron';
import { readHostFacts } from '../host/facts.ts';
import { Tree } from '../host/fs/tree.ts';

/** Memory and kernel change only with a reboot or hot plug. */
const CALENDAR = '17 */6 * * *';

// A program of its own, which ends when it has said: what it needs is loaded nowhere else. Argument: the root of sysfs.
const [sysfs] = process.argv.slice(2);
const facts = await readHostFacts(new Tree(sysfs ?? '/sys'));
const [due] = cron.createTask(CALENDAR, () => {}).getNextRuns(1);
process.stdout.write(JSON.stringify({ facts, dueAtMs: due?.getTime() }));
