import { hours } from '../../model/duration.ts';
import { metrics } from './metrics.ts';
import type { ReportBuilder } from './report-builder.ts';
import { atMostEvery, filesOf, placedIn, type Survey } from './survey.ts';
import { parseCount } from './values.ts';

/** Source: Linux Documentation/ABI/testing/sysfs-class-firmware. */
const UPLOAD_STATES: ReadonlySet<string> = new Set(['receiving', 'preparing', 'transferring', 'programming']);

/** Adds the state of firmware uploads, and the number of writes to the flash. */
export function addUpdates(builder: ReportBuilder, survey: Survey, address: string): void {
  const uploads = survey.uploads.filter((upload) => upload.address === address);
  const states = uploads.flatMap(({ path }) => filesOf(survey, path, address).text('status') ?? []);
  const running = states.find((state) => UPLOAD_STATES.has(state));
  if (states.length > 0) {
    builder.add(metrics.updateRunning, running !== undefined);
    const message = `firmware upload: ${running ?? 'idle'}`;
    builder.find('UpdateRunning', running !== undefined, running === undefined ? 'Idle' : 'Uploading', message, { instance: 'upload' });
  }
  if (survey.options['flash-count']) {
    builder.add(
      metrics.flashUpdates,
      atMostEvery(survey, `${address}/flash`, hours(24), (each) => readFlashCount(each, address)),
    );
  }
}

function readFlashCount(survey: Survey, address: string): number | bigint | undefined {
  for (const { path } of placedIn(survey.host.sys, 'bus/platform/drivers/intel-m10bmc-sec-update').filter((d) => d.address === address)) {
    const count = filesOf(survey, `${path}/security`, address).value('flash_count', parseCount);
    if (count !== undefined) return count;
  }
  return undefined;
}
