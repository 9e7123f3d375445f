// How the image starts the agent. deploy/Dockerfile says it; each other way to make or to measure the image reads it there.
import { readFileSync } from 'node:fs';

export function imageStart() {
  const stage = readFileSync(new URL('../../deploy/Dockerfile', import.meta.url), 'utf8')
    .split(/^FROM /m)
    .at(-1);
  const line = (name) => new RegExp(`^${name} (.+)$`, 'm').exec(stage)[1];
  return {
    env: Object.fromEntries(
      line('ENV')
        .split(' ')
        .map((variable) => variable.split('=')),
    ),
    entrypoint: JSON.parse(line('ENTRYPOINT')),
    arguments: JSON.parse(line('CMD')),
    port: line('EXPOSE'),
    user: line('USER'),
  };
}
