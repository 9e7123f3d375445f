import type { Board } from '../../board/board.ts';
import { type Html, html } from '../../board/html.ts';
import type { ContainerLocality } from '../../model/container-locality.ts';

/** A container with more devices gets no matrix, only the farthest ways. */
const MOST_DEVICES = 24;

/** How near the devices of each container are to each other and to its CPUs; undefined when none holds a GPU and another device. */
export function localityPart(localities: readonly ContainerLocality[], { devices }: Pick<Board, 'devices'>): Html | undefined {
  if (localities.length === 0) return undefined;
  const names = new Map(devices.map(({ key, name }) => [key, name]));
  const nameOf = (key: string): string => names.get(key) ?? key;
  return html`<h2>How near its devices are</h2>${localities.map(
    (one) => html`<p><b>${one.container}</b>: ${summary(one).join('; ')}</p>${matrix(one, nameOf)}`,
  )}`;
}

function summary({ pairs, gpuPath, nicPath, offNode }: ContainerLocality): readonly string[] {
  return [
    ...(gpuPath === undefined ? [] : [`farthest way between GPUs ${gpuPath}`]),
    ...(nicPath === undefined ? [] : [`farthest way from a GPU to its nearest network device ${nicPath}`]),
    ...(offNode === undefined ? [] : [`${offNode} off the NUMA nodes of its CPUs`]),
    ...(pairs.some(({ path }) => path === undefined) ? ['some ways are unknown'] : []),
  ];
}

function matrix({ pairs }: ContainerLocality, nameOf: (key: string) => string): Html | undefined {
  const keys = [...new Set(pairs.flatMap(({ from, to }) => [from, to]))];
  if (keys.length > MOST_DEVICES) return undefined;
  const ways = new Map(pairs.flatMap(({ from, to, path = '?' }) => [[`${from} ${to}`, path] as const, [`${to} ${from}`, path] as const]));
  return html`<div class="scroll"><table><thead><tr><th scope="col">Device</th>${keys.map((key) => html`<th scope="col">${nameOf(key)}</th>`)}</tr></thead><tbody>
${keys.map(
  (row) =>
    html`<tr><th scope="row">${nameOf(row)}</th>${keys.map((column) => html`<td>${row === column ? '' : ways.get(`${row} ${column}`)}</td>`)}</tr>\n`,
)}</tbody></table></div>`;
}
