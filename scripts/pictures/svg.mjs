/** Draws a terminal screen as SVG: rows of runs `{ text, color?, background?, isBold? }`, colours as CSS. */
const CELL = { width: 8.4, height: 18 };
const MARGIN = 12;
const TEXT = '#d8dee9';
const PAPER = '#1c2128';

export function svgOf(rows) {
  const columns = Math.max(...rows.map((row) => row.reduce((sum, { text }) => sum + [...text].length, 0)), 1);
  const width = Math.ceil(columns * CELL.width + 2 * MARGIN);
  const height = Math.ceil(rows.length * CELL.height + 2 * MARGIN);
  const lines = rows.map((row, n) => lineOf(row, MARGIN + n * CELL.height)).join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<title>device-agent top on the demo</title>
<rect width="100%" height="100%" rx="8" fill="${PAPER}"/>
<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14" fill="${TEXT}">
${lines}</g>
</svg>
`;
}

function lineOf(row, top) {
  let column = 0;
  return row
    .map(({ text, color, background, isBold }) => {
      const x = (MARGIN + column * CELL.width).toFixed(1);
      const length = [...text].length;
      const width = (length * CELL.width).toFixed(1);
      column += length;
      const paper =
        background === undefined ? '' : `<rect x="${x}" y="${top}" width="${width}" height="${CELL.height}" fill="${background}"/>\n`;
      if (text.trim() === '') return paper;
      const look = `${color === undefined ? '' : ` fill="${color}"`}${isBold ? ' font-weight="bold"' : ''}`;
      // The length keeps the columns in line, whatever font is found.
      return `${paper}<text x="${x}" y="${top + 14}" textLength="${width}"${look}>${escaped(text)}</text>\n`;
    })
    .join('');
}

/** Browsers join plain spaces to one. */
const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`).replaceAll(' ', '\u00a0');
