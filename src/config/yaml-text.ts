import { visible, visibleLines } from '../model/one-line.ts';

/** Writes a value. Text that must not reach a terminal as it is gets quotes, because only quoted texts of YAML have escapes. */
export async function yamlText(value: unknown, options: { readonly flowLevel?: number } = {}): Promise<string> {
  const { dump, SCALAR_STYLE, visit } = await import('js-yaml');
  const text = dump(value, {
    lineWidth: -1,
    noRefs: true,
    quoteStyle: 'double',
    ...options,
    transform: (documents) =>
      visit(documents, (node) => {
        if (node.kind === 'scalar' && visible(node.value) !== node.value) node.style = SCALAR_STYLE.DOUBLE_QUOTED;
      }),
  });
  // JSON escapes these as two surrogates, and YAML does not.
  const escaped = text.replace(/[\u{10000}-\u{10ffff}]/gu, (character) =>
    visible(character) === character ? character : `\\U${(character.codePointAt(0) as number).toString(16).padStart(8, '0')}`,
  );
  return visibleLines(escaped);
}
