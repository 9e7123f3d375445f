/** Text as code. Empty for an empty text. */
export const code = (text: string): string => (text === '' ? '' : `\`${text.replaceAll('|', '\\|')}\``);

/** Text for a cell of a table, in one line. */
export const cell = (text: string): string => escapeText(text).replaceAll('|', '\\|').replaceAll('\n', ' ');

/** Escapes `<x>`, so that Markdown does not treat it as a tag. */
export const escapeText = (text: string): string => text.replaceAll('<', '&lt;');
