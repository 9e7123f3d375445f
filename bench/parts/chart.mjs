// Line charts as SVG, side by side.
const [WIDTH, HEIGHT, MARGIN] = [360, 240, 56];

/** `charts`: `{ title, points }`, points as `[x, y]`, both from 0. */
export function chartOf(title, charts) {
  const all = charts.map((chart, at) => `<g transform="translate(${at * (WIDTH + MARGIN)},32)">${lineOf(chart)}</g>`).join('\n');
  const width = charts.length * (WIDTH + MARGIN) + MARGIN;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${HEIGHT + 96}" width="${width}" height="${HEIGHT + 96}">
<title>${title}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
<g font-family="system-ui, sans-serif" font-size="12" fill="#24292f">
<text x="${MARGIN}" y="20" font-size="14">${title}</text>
${all}
</g>
</svg>
`;
}

function lineOf({ title, points }) {
  const [mostX, mostY] = [0, 1].map((axis) => niceAbove(Math.max(...points.map((point) => point[axis]))));
  const x = (value) => (MARGIN + (value / mostX) * (WIDTH - MARGIN)).toFixed(1);
  const y = (value) => (HEIGHT - (value / mostY) * (HEIGHT - 16)).toFixed(1);
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const grid = ticks.map((part) => `<path d="M${x(0)} ${y(part * mostY)}H${WIDTH}" stroke="#d0d7de"/>`).join('');
  const left = ticks.map(
    (part) => `<text x="${MARGIN - 6}" y="${y(part * mostY)}" dy="4" text-anchor="end">${numberText(part * mostY)}</text>`,
  );
  const below = ticks.map(
    (part) => `<text x="${x(part * mostX)}" y="${HEIGHT + 18}" text-anchor="middle">${numberText(part * mostX)}</text>`,
  );
  const path = points.map(([a, b], at) => `${at === 0 ? 'M' : 'L'}${x(a)} ${y(b)}`).join('');
  const dots = points.map(([a, b]) => `<circle cx="${x(a)}" cy="${y(b)}" r="3" fill="#0969da"/>`).join('');
  const label = `<text x="${(MARGIN + WIDTH) / 2}" y="${HEIGHT + 40}" text-anchor="middle">${title}</text>`;
  return `${grid}${left.join('')}${below.join('')}<path d="${path}" fill="none" stroke="#0969da" stroke-width="2"/>${dots}${label}`;
}

/** The next of 1, 2, 4, 5, 6, 8 or 10 times a power of ten. */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return power * ([1, 2, 4, 5, 6, 8, 10].find((part) => part * power >= value) ?? 10);
}

const numberText = (value) => (value >= 10_000 ? `${value / 1_000}k` : String(Number(value.toFixed(2))));
