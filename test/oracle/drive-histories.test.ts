import { DriveLife } from './drive-histories.ts';
import { judgeLives } from './lives.ts';

judgeLives(
  'a drive of %s that is only worn is no dead one, and a line of the log counts by its own time',
  [['nvme', (choose) => new DriveLife(choose)]],
  12,
);
