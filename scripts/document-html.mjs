// Renders a page of the documentation for people, when the program is built: the agent has no Markdown.
import { Marked } from 'marked';

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text) => text.replace(/[&<>"']/g, (character) => ENTITIES[character]);
/** Names in examples for which the agent puts those of the link: `$NODE`, and `n1` where it is a node. */
const filled = (code) =>
  escaped(code)
    .replace(/\$(NODE|DEVICE|POD)\b/g, (text, name) => `<var data-fill="${name.toLowerCase()}">${text}</var>`)
    .replace(/(?<=\bNODE=|\bnode=&quot;)n1(?=\s|&quot;|$)/g, '<var data-fill="node">n1</var>')
    .replace(/(?<=\bDEVICE=|\bdevice=&quot;)(?:GPU-1|mlx5_0)(?=\s|&quot;|$)/g, '<var data-fill="device">$&</var>');
/** What people run or paste; an example of an answer is neither. */
const isForCopy = (text, lang) => lang === 'promql' || /^(?:kubectl|helm|device-agent|NODE=|sudo|curl|systemctl|nvidia-smi) ?/m.test(text);
/** The anchor that GitHub gives a heading, so that one address of a section is right in both places. */
const anchorOf = (title) =>
  title
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .replaceAll(' ', '-');

const marked = new Marked({
  renderer: {
    heading({ tokens, text, depth }) {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
    },
    code({ text, lang }) {
      return isForCopy(text, lang)
        ? `<div class="cmd"><code>${filled(text)}</code></div>\n`
        : `<pre tabindex="0"><code>${escaped(text)}</code></pre>\n`;
    },
    codespan({ text }) {
      return `<code>${filled(text)}</code>`;
    },
    // Only pages of this documentation: a cluster may have no way to others.
    link({ href, tokens }) {
      const words = this.parser.parseInline(tokens);
      return /^(?:[\w./-]+\.md)?(?:#[\w-]+)?$/.test(href) ? `<a href="${escaped(href)}">${words}</a>` : words;
    },
    image({ text }) {
      return text === '' ? '' : `<i>${escaped(text)}</i>`;
    },
    html({ text }) {
      return text.startsWith('<!--') ? '' : escaped(text);
    },
  },
});

export const documentHtml = (text) => marked.parse(text);
