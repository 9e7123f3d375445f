// What the turns of the scrape benchmark come to. A turn: `{ latencies, cpuMs, bytes }`, times in milliseconds, CPU for one scrape.
import { median, quantile, summary } from './measure.mjs';

/** At most so much of node_exporter's median. */
const MOST_OF_EXPORTER = 0.5;
const MOST_P99_MS = 50;
const MOST_TENFOLD = 11;
/** End of the name of a node_exporter that is scraped as seldom as `live`. */
export const PACED = 'paced';

/** A row per peer. Ratios are to the better one of the node_exporters. */
export function columns({ series, scrapers, gzip, took }) {
  const counted = [...took].filter(([, turns]) => turns.length > 0);
  return counted.map(([name, turns]) => ({
    series,
    'at once': scrapers,
    gzip: gzip ? 'yes' : 'no',
    who: name,
    KiB: Math.round(turns[0].bytes / 1_024),
    'p50 ms': summary(turns.map(medianOf), 2).text,
    'p99 ms': p99(turns).toFixed(1),
    'CPU ms per scrape': name === 'live' ? '-' : cpuText(turns),
    'p50 / node_exporter': ratioText(p50(turns), peer(took, name, p50)),
    'p50 / static': (p50(turns) / p50(took.get('static'))).toFixed(2),
    'CPU / node_exporter': name === 'live' ? '-' : ratioText(cpu(turns), peer(took, name, cpu)),
  }));
}

export function goals(all) {
  const verdicts = [];
  const add = (goal, is, most) => verdicts.push({ goal, is: Number(is.toPrecision(3)), 'at most': most, met: is <= most ? 'yes' : 'NO' });
  for (const { series, scrapers, gzip, took } of all) {
    for (const name of ['same', 'first', 'live']) {
      const turns = took.get(name);
      const where = `${series} series, ${scrapers} at once, ${gzip ? 'gzip' : 'plain'}, ${name}`;
      const exporter = peer(took, name, p50);
      if (exporter !== undefined) add(`${where}: median / node_exporter`, p50(turns) / exporter, MOST_OF_EXPORTER);
      const isOfP99 = scrapers === 50 && series > 5_000 && series < 20_000;
      if (isOfP99) add(`${where}: p99, ms (the static page's: ${p99(took.get('static')).toFixed(1)})`, p99(turns), MOST_P99_MS);
      const tenfold = all.find(
        (one) => one.series > 8 * series && one.series < 12 * series && one.scrapers === scrapers && one.gzip === gzip,
      );
      if (tenfold !== undefined && name !== 'live') {
        const ratio = cpu(tenfold.took.get(name)) / cpu(turns);
        add(`${where}: CPU with ten times the series`, (ratio * 10 * series) / tenfold.series, MOST_TENFOLD);
      }
    }
  }
  return verdicts;
}

const medianOf = ({ latencies }) => median(latencies);
const p50 = (turns) => median(turns.map(medianOf));
const cpu = (turns) => median(turns.map(({ cpuMs }) => cpuMs));

function cpuText(turns) {
  return summary(
    turns.map(({ cpuMs }) => cpuMs),
    2,
  ).text;
}

function p99(turns) {
  return quantile(
    turns.flatMap(({ latencies }) => latencies),
    0.99,
  );
}

const ratioText = (figure, other) => (other === undefined ? '-' : (figure / other).toFixed(3));

/** The figure of the better node_exporter, undefined where there is none: for one that is scraped seldom, of one that is scraped seldom. */
function peer(took, name, figure) {
  const all = [...took].filter(([one, turns]) => one.startsWith('node_exporter') && turns.length > 0);
  const paced = all.filter(([one]) => one.endsWith(PACED));
  const isPaced = (name === 'live' || name.endsWith(PACED)) && paced.length > 0;
  const counted = isPaced ? paced : all.filter(([one]) => !one.endsWith(PACED));
  return counted.length === 0 ? undefined : Math.min(...counted.map(([, turns]) => figure(turns)));
}
