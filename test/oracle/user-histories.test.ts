import { judgeLives } from './lives.ts';
import { UserLife } from './user-histories.ts';

judgeLives(
  'a GPU of %s is of those whose processes use it, and its figures are theirs, over each change and each restart',
  [['nvidia', (choose) => new UserLife(choose)]],
  12,
);
