// Swaps the place of the declarations as fast as it can, until its parent ends it. Arguments: "link" or "directory", the place, what it shows in turn.
import { renameSync, symlinkSync } from 'node:fs';

const [kind, place, trusted, hostile] = process.argv.slice(2);
process.stdout.write('ready\n');
for (;;) {
  if (kind === 'link') {
    for (const target of [hostile, trusted]) {
      symlinkSync(target, `${place}.new`);
      renameSync(`${place}.new`, place);
    }
  } else {
    renameSync(place, trusted);
    renameSync(hostile, place);
    renameSync(place, hostile);
    renameSync(trusted, place);
  }
}
