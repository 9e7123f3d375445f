/** Signs for one to eight eighths of a cell. */
const EIGHTHS = '▏▎▍▌▋▊▉█';

/** A bar of `cells` signs for a share from 0 to 1. A share above 0 always shows something. */
export function barText(ratio: number, cells: number, isUtf8: boolean): string {
  const share = Math.max(0, Math.min(1, ratio));
  if (!isUtf8) {
    const full = share === 0 ? 0 : Math.max(1, Math.round(share * cells));
    return '#'.repeat(full) + '-'.repeat(cells - full);
  }
  const eighths = share === 0 ? 0 : Math.max(1, Math.round(share * cells * 8));
  const full = Math.floor(eighths / 8);
  const part = eighths % 8 === 0 ? '' : (EIGHTHS[(eighths % 8) - 1] ?? '');
  return '█'.repeat(full) + part + '░'.repeat(cells - full - part.length);
}
