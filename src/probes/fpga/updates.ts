import { metrics } from './metrics.ts';
import type { ReportBuilder } from './report-builder.ts';
import { filesOf, type Survey } from './survey.ts';

/** Source: Linux Documentation/ABI/testing/sysfs-class-firmware. */
const UPLOAD_STATES: ReadonlySet<string> = new Set(['receiving', 'preparing', 'transferring', 'programming']);

/** Adds the state of firmware uploads. */
export function addUpdates(builder: ReportBuilder, survey: Survey, address: string): void {
  const uploads = survey.uploads.filter((upload) => upload.address === address);
  const states = uploads.flatMap(({ path }) => filesOf(survey, path, address).text('status') ?? []);
  const running = states.find((state) => UPLOAD_STATES.has(state));
  if (states.length > 0) {
    builder.add(metrics.updateRunning, running !== undefined);
    const message = `firmware upload: ${running ?? 'idle'}`;
    builder.find('UpdateRunning', running !== undefined, running === undefined ? 'Idle' : 'Uploading', message, { instance: 'upload' });
  }
}
