/** The page's only style sheet. It is inlined, and the content security policy allows only this style sheet. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #dfe4ea; --back: #f6f7f9; --card: #fff; --link: #0b5cad;
  --good: #1a7f4b; --warn: #a15c00; --bad: #b3261e; --none: #5b6675; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #9aa6b5; --line: #2c3542; --back: #11161d; --card: #19202a; --link: #7cb8ff;
    --good: #5fcf94; --warn: #f0b45a; --bad: #ff8a80; --none: #9aa6b5; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main, header, footer { max-width: 84rem; margin: 0 auto; padding: 0 1.25rem; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; align-items: baseline; padding-top: 1.25rem; }
h1 { font-size: 1.35rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
nav { display: flex; flex-wrap: wrap; gap: 1rem; margin-left: auto; }
.soft, small, footer { color: var(--soft); }
small { font-size: .85rem; }
footer { padding-top: 1rem; padding-bottom: 2rem; font-size: .85rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; padding: 0; list-style: none; }
.tiles li { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .9rem; min-width: 7rem; }
.tiles b { display: block; font-size: 1.35rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tiles .wide { min-width: 12rem; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .55rem .8rem; border-top: 1px solid var(--line); }
thead th { border-top: 0; font-size: .8rem; font-weight: 600; color: var(--soft); white-space: nowrap; }
tbody th { font-weight: 600; }
th small { font-weight: 400; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .05rem .75rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
ul.plain { list-style: none; margin: 0; padding: 0; }
.id { overflow-wrap: anywhere; min-width: 9rem; display: inline-block; }
.state { white-space: nowrap; font-weight: 600; }
.state::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-right: .4em; border-radius: 50%; background: currentColor; }
.healthy { color: var(--good); } .degraded { color: var(--warn); } .unhealthy, .missing { color: var(--bad); } .unknown { color: var(--none); }
.unhealthy.state::before, .missing.state::before { border-radius: 0; }
.unknown.state::before { background: none; border: 2px solid currentColor; }
.condition { margin: .25rem 0 0; max-width: 30rem; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  table, tbody { display: block; }
  thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: .6rem .8rem; border-top: 1px solid var(--line); }
  tr:first-child { border-top: 0; }
  th, td { min-width: 0; padding: 0; border: 0; overflow-wrap: anywhere; }
}
`;
