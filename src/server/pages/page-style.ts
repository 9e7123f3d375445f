/**
 * The only style sheet of the pages. A state has a shape, a colour and a word; no other thing has its colours. Lengths that depend on data
 * are attributes of drawings, because the content security policy allows no style in the page.
 */
export const PAGE_STYLE = `
:root { color-scheme: light dark;
  --back: #f5f6f8; --card: #fff; --sunk: #eceff3; --line: #dde1e8; --edge: #8b95a4; --ink: #131820; --soft: #56606f;
  --link: #1f55b5; --use: #3d6fd0; --fill: #cfdcf5;
  --bad: #b3201a; --bad-tint: #fdeceb; --bad-solid: #b3201a; --on-bad: #fff;
  --warn: #855000; --warn-tint: #fdf3df; --warn-solid: #f0b23e; --on-warn: #221600; --good: #18794b; --none: #56606f;
  --line-0: #1f55b5; --line-1: #a8480d; --line-2: #12756b; --line-3: #7a3fa8; --line-4: #56606f; --line-5: #8a6d00;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  --tiny: .6875rem; --small: .75rem; --text: .8125rem; --lead: .9375rem; --large: 1.25rem; --say: 1.5rem; --title: 1.875rem; --gap: 1rem; }
@media (prefers-color-scheme: dark) { :root {
  --back: #0c1016; --card: #141a22; --sunk: #1c232d; --line: #28313d; --edge: #667384; --ink: #e7ecf3; --soft: #9aa6b5;
  --link: #86b4ff; --use: #5b8def; --fill: #213a68;
  --bad: #ff8379; --bad-tint: #33171a; --bad-solid: #c9302a;
  --warn: #f1b950; --warn-tint: #2d2413; --warn-solid: #d99a25; --good: #55c98d; --none: #9aa6b5;
  --line-0: #86b4ff; --line-1: #ffa36b; --line-2: #4fd0c0; --line-3: #c9a2f5; --line-4: #9aa6b5; --line-5: #d9c45a; } }
*, ::before, ::after { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: var(--text)/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; font-variant-numeric: tabular-nums; }
h1, h2, h3, p, ul, dl, dd, figure, table { margin: 0; padding: 0; }
ul { list-style: none; }
a { color: var(--link); text-decoration: none; }
a:hover, p a, pre a, li a, dd a, td a, tbody th a, footer a { text-decoration: underline; text-underline-offset: .18em; text-decoration-thickness: 1px; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px; }
code, .mono, .pci { font-family: var(--mono); font-size: .94em; }
small { font-size: var(--small); } time { white-space: nowrap; }
.soft, small { color: var(--soft); font-weight: 400; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: 1rem; top: -4rem; z-index: 3; padding: .5rem .75rem; background: var(--card); border-radius: 6px; }
.skip:focus { top: .5rem; }

.bar-top { display: flex; align-items: center; gap: .25rem 1.25rem; min-height: 44px; padding: 0 var(--gap); background: var(--card); border-bottom: 1px solid var(--line); }
.brand { display: flex; align-items: center; gap: .5rem; color: var(--ink); font-size: var(--lead); font-weight: 650; white-space: nowrap; }
.bar-top nav { display: flex; align-self: stretch; gap: .25rem; }
.bar-top nav a { display: flex; align-items: center; padding: 0 .6rem; color: var(--soft); border-block: 2px solid transparent; }
.bar-top nav a[aria-current] { color: var(--ink); font-weight: 600; border-bottom-color: var(--ink); }
#live { margin-left: auto; color: var(--soft); }
#live[data-state=lost] { color: var(--bad); font-weight: 600; }
main { display: grid; grid-template-columns: minmax(0, 1fr); gap: .625rem; max-width: 120rem; margin: 0 auto; padding: .5rem var(--gap) .75rem; }
footer { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; max-width: 120rem; margin: 0 auto; padding: .25rem var(--gap) 1.5rem; color: var(--soft); font-size: var(--small); }
.card { min-width: 0; background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
h2 { font-size: var(--text); font-weight: 650; }
.head { display: flex; flex-wrap: wrap; align-items: baseline; gap: .1rem .6rem; padding: .55rem .75rem; }
.head .soft { font-size: var(--small); }
.head > :last-child:not(:first-child) { margin-left: auto; }
.body { display: grid; gap: .3rem; padding: 0 .75rem .7rem; }
article { overflow-wrap: anywhere; padding: .3rem .75rem; } article:has(:target) { outline: 2px solid var(--link); }
article h3 { font-size: var(--text); } article p { max-width: 60rem; }
pre { margin: 0; padding: 0 .75rem .75rem; font: .94em/1.45 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; }
.prose { display: grid; grid-template-columns: minmax(0, 1fr); gap: .6rem; padding: .6rem .75rem; } .prose > :is(p, ul, ol) { max-width: 60rem; overflow-wrap: anywhere; } .prose h2 { font-size: var(--lead); margin-top: .8rem; }
.prose :is(ul, ol) { padding-left: 1.4rem; } .prose ul { list-style: disc; } .prose ol { list-style: decimal; } .prose .cmd code { flex: 1; white-space: pre-wrap; } .prose :is(td, th) { padding: .25rem .4rem; text-align: left; white-space: normal; vertical-align: top; overflow-wrap: anywhere; } .prose table { min-width: 0; width: 100%; } .prose pre { padding: 0; } .prose var { font-style: normal; font-weight: 600; }

.s { display: inline-flex; align-items: center; gap: .45em; font-weight: 600; white-space: nowrap; }
.s::before { content: ""; flex: none; width: 10px; height: 10px; background: currentColor; }
.s.healthy { color: var(--soft); font-weight: 400; } .s.healthy::before { width: 8px; height: 8px; margin: 1px; border-radius: 50%; background: var(--good); }
.s.degraded { color: var(--warn); } .s.degraded::before { width: 12px; height: 11px; margin: 0 -1px; clip-path: polygon(50% 4%, 100% 96%, 0 96%); }
.s.unhealthy, .s.missing { color: var(--bad); } .s.missing::before { background: none; border: 2px solid; }
.s.unknown { color: var(--none); } .s.unknown::before { background: none; border: 2px solid; transform: rotate(45deg) scale(.85); }
.s.pending { color: var(--warn); } .s.pending::before { border: 2px solid; border-radius: 50%; background: linear-gradient(90deg, currentColor 50%, transparent 50%); }
.s.recovering { color: var(--good); } .s.recovering::before { border: 2px solid; border-radius: 50%; background: none; }

.say { display: grid; grid-template-columns: minmax(0, 1fr) auto; align-items: center; gap: .3rem 2rem; padding: .6rem 1rem; background: var(--card); border-left: 5px solid var(--good); }
.say.unhealthy, .say.missing { background: var(--bad-tint); border-left-color: var(--bad-solid); }
.say.degraded, .say.pending { background: var(--warn-tint); border-left-color: var(--warn-solid); }
/* The agent does not answer, so the page shows the last state that it got. */
[data-lost] .say, [data-lost] .map, [data-lost] #devices, [data-lost] .stats { filter: grayscale(1); opacity: .75; } [data-lost] .say h1::before { content: "Last known: "; }
.say.unknown { border-left-color: var(--edge); }
.say h1 { grid-column: 1 / -1; font-size: var(--say); font-weight: 650; line-height: 1.2; letter-spacing: -.012em; text-wrap: balance; overflow-wrap: anywhere; }
.say h1 a { color: inherit; text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: .14em; }
.say h2 { font-size: var(--lead); overflow-wrap: anywhere; } .say p { color: var(--soft); } .say p b { color: var(--ink); font-weight: 600; }
.also { grid-column: 1 / -1; padding-top: .45rem; border-top: 1px solid var(--line); }
.also li { display: flex; flex-wrap: wrap; align-items: baseline; gap: .15rem .6rem; } .also li > span:not(.s) { flex: 1 1 20rem; } .also .cmd code { padding: .1rem .6rem; font-size: var(--small); }
.cmd { display: flex; max-width: 100%; background: var(--card); border: 1px solid var(--edge); border-radius: 6px; }
.cmd code { padding: .35rem .7rem; font-size: var(--text); overflow-wrap: anywhere; user-select: all; }
.cmd button { min-width: 4.6rem; padding: 0 .8rem; font: inherit; font-weight: 600; color: var(--link); background: none; border: 0; border-left: 1px solid var(--line); cursor: pointer; }

.overview { display: grid; grid-template: "map table" auto "pods table" 1fr / 27rem minmax(0, 1fr); align-items: start; gap: var(--gap); }
#map { grid-area: map; } #table { grid-area: table; } #pods { grid-area: pods; }
#pods, #map, #problems, #unresolved, #say { min-width: 0; } #problems:empty, #unresolved:empty, #pods:empty, #map:empty, [data-part]:empty { display: none; }
.pods ul { display: grid; grid-template-columns: 1fr 1fr; gap: 0 .75rem; padding: 0 .75rem .5rem; }
.pods li { display: flex; align-items: center; gap: .45rem; min-height: 24px; overflow: hidden; white-space: nowrap; font-size: var(--small); }
.pods li a { flex: none; line-height: 24px; } .pods li > .soft { overflow: hidden; text-overflow: ellipsis; }
.map { padding: 0 .75rem .75rem; }
.map h3 { display: flex; flex-wrap: wrap; gap: 0 .5rem; padding: .4rem 0 .3rem; font-size: var(--small); font-weight: 650; } .map h3:first-child { padding-top: 0; }
.map h3 .soft:last-child { margin-left: auto; }
.tiles { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 6px; }
.tile { position: relative; isolation: isolate; display: flex; flex-direction: column; min-height: 82px; overflow: hidden; background: var(--card); border: 1px solid var(--line); border-radius: 4px; }
.tile.held { border-color: var(--edge); }
.tile > a { flex: 1 0 auto; display: grid; grid-template-columns: minmax(0, 1fr); align-content: space-between; padding: 4px 7px 3px; color: inherit; line-height: 1.25; text-decoration: none; }
.tile:hover, .tile.same, .cell.same { box-shadow: 0 0 0 2px var(--link); }
.tile .n { display: flex; align-items: center; gap: .35rem; font-size: var(--small); font-weight: 600; white-space: nowrap; } .tile .n .s { margin-left: auto; }
.tile .t, .tile .p { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.tile .v { font-size: 1.0625rem; font-weight: 600; white-space: nowrap; } .tile .v small, .tile .p { font-size: var(--tiny); color: var(--soft); }
.tile .v.word { font-size: var(--small); white-space: normal; } .tile:not(.held) .v { color: var(--soft); font-weight: 400; } .tile.held .p { color: var(--ink); }
.lvl { position: absolute; inset: 0; z-index: -1; width: 100%; height: 100%; } .lvl rect { fill: var(--fill); }
.tile.unhealthy, .cell.unhealthy { background: var(--bad-solid); border-color: var(--bad-solid); color: var(--on-bad); }
.tile.degraded, .cell.degraded { background: var(--warn-solid); border-color: var(--warn-solid); color: var(--on-warn); }
.tile:is(.unhealthy, .degraded) :is(.s, .p, .v, .v small) { color: inherit; } .tile:is(.unhealthy, .degraded, .missing) .lvl { display: none; }
.tile.missing, .cell.missing { border: 2px dashed var(--bad); color: var(--bad); } .tile.pending, .cell.pending { border: 2px dashed var(--warn); }
.tile.unknown, .cell.unknown { background: repeating-linear-gradient(135deg, var(--sunk) 0 5px, var(--card) 5px 10px); }
.parts { display: flex; gap: 2px; padding: 0 3px 3px; }
.cell { flex: 1; min-width: 0; height: 18px; overflow: hidden; text-align: center; font-size: var(--tiny); line-height: 16px; color: var(--soft); text-decoration: none; background: var(--card); border: 1px solid var(--line); border-radius: 2px; }
#devices :is(td, th) a { text-decoration-color: var(--line); }
.cell.held.healthy, .cell.held.recovering { background: var(--fill); border-color: var(--edge); color: var(--ink); }
.cell.unhealthy:not(.held) { background: var(--bad-tint); color: var(--bad); } .cell.degraded:not(.held) { background: var(--warn-tint); color: var(--warn); }
.tile.many { grid-column: 1 / -1; flex-direction: row; min-height: 56px; } .tile.many > a { flex: none; width: 8.2rem; } .tile.many .lvl { width: 8.2rem; }
.tile.many:is(.unhealthy, .degraded) { background: var(--card); } .tile.many.unhealthy > a { background: var(--bad-solid); } .tile.many.degraded > a { background: var(--warn-solid); }
.many .parts { display: grid; flex: 1; grid-template-columns: repeat(auto-fill, minmax(9px, 1fr)); align-content: center; padding: 4px; } .many .cell { height: 12px; border-radius: 1px; }
.nodes { display: grid; grid-template-columns: repeat(auto-fill, minmax(120px, 1fr)); gap: 6px; } .nodes .tile { min-height: 62px; } .nodes .tile > a { display: grid; } .nodes .v.word { overflow-wrap: anywhere; } .two thead th { white-space: normal; } #nodes .num { white-space: nowrap; } #nodes td { overflow-wrap: break-word; }
.cells { display: grid; grid-template-columns: repeat(auto-fill, minmax(14px, 1fr)); gap: 2px; } .cells > * { height: 16px; min-width: 0; background: linear-gradient(0deg, var(--use) var(--u, 0%), var(--sunk) 0); border: 1px solid var(--line); border-radius: 2px; } .cells.small { grid-template-columns: repeat(auto-fill, minmax(8px, 1fr)); gap: 1px; } .cells.small > * { height: 9px; border-width: 0; border-radius: 1px; }
.cells > .cell { border-width: 1px; } .cells > .unhealthy { background: var(--bad-solid); } .cells > .degraded { background: var(--warn-solid); } .cells > .missing { background: var(--card); } .cells > .unknown { background: repeating-linear-gradient(135deg, var(--edge) 0 2px, var(--card) 2px 5px); border: 1px solid var(--edge); }
.u1 { --u: 10%; } .u2 { --u: 20%; } .u3 { --u: 30%; } .u4 { --u: 40%; } .u5 { --u: 50%; } .u6 { --u: 60%; } .u7 { --u: 70%; } .u8 { --u: 80%; } .u9 { --u: 90%; } .u10 { --u: 100%; }
.key { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .1rem .3rem; padding: .4rem .75rem; border-top: 1px solid var(--line); font-size: var(--tiny); } .key .s { font-weight: 400; }

.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th, td { height: 24px; padding: 0 .6rem; text-align: left; font-weight: 400; border-top: 1px solid var(--line); }
thead th { border-top: 0; font-size: var(--tiny); color: var(--soft); white-space: nowrap; } thead a { color: inherit; } thead [aria-sort] a { color: var(--ink); font-weight: 650; }
tbody th { font-weight: 600; } tbody tr:hover > * { background: color-mix(in srgb, var(--link) 6%, transparent); } tr:focus-within > * { background: color-mix(in srgb, var(--link) 9%, transparent); }
.num { text-align: right; white-space: nowrap; }
.text th, .text td { height: auto; padding-block: .4rem; vertical-align: top; overflow-wrap: anywhere; } .text th { overflow-wrap: break-word; } .text thead th, .text .num { overflow-wrap: normal; }
#devices { table-layout: fixed; } #devices tr:not(.why) > * { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
#devices tr:not(.why) > * { padding-inline: .5rem; } .c1 { width: 18.1%; } .c2 { width: 17%; } .c3 { width: 18.4%; } .c4 { width: 13.5%; } .c5 { width: 13%; } .c6 { width: 14.6%; }
#devices tbody:focus { outline: none; }
#devices .part th { padding-left: 1.5rem; } .part th::before { content: "└"; margin: 0 .35rem 0 -.85rem; color: var(--edge); }
.group th { background: var(--back); font-weight: 600; }
tr.bad > :first-child { box-shadow: inset 4px 0 var(--bad-solid); } tr.warn > :first-child { box-shadow: inset 4px 0 var(--warn-solid); }
#devices .why td { height: auto; padding: 0 .6rem 4px 1.9rem; border-top: 0; line-height: 1.35; overflow-wrap: anywhere; }
.read { position: relative; display: flex; justify-content: space-between; gap: .4rem; line-height: 20px; } .read > span { min-width: 0; overflow: hidden; text-overflow: ellipsis; font-size: var(--tiny); color: var(--soft); } .read b { flex: none; font-weight: 400; }
.bar { position: absolute; left: 0; bottom: 0; width: 100%; height: 2px; background: var(--line); } .bar rect { fill: var(--use); } .bar.hot rect { fill: var(--warn-solid); } .parts svg { display: block; width: 100%; min-width: 7rem; height: .6rem; } .p-busy { fill: var(--use); } .p-idle { fill: var(--warn-solid); } .p-unknown { fill: var(--line); }
.spark { display: block; width: 100%; height: 20px; }
.spark path, .plot path { fill: none; stroke: var(--use); stroke-width: 1.5; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.filter { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem .6rem; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
.filter :is(input, select, button) { height: 28px; padding: 0 .5rem; font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--edge); border-radius: 4px; } .filter input[type=search] { flex: 1 1 12rem; min-width: 0; }
.filter label { display: flex; align-items: center; gap: .35rem; font-size: var(--small); color: var(--soft); }
.also a { display: inline-block; padding: .2rem 0; }
.filter.groups { column-gap: 2.4rem; } .groups .soft { padding: .25rem 0; }
.chips { display: flex; flex-wrap: wrap; gap: .1rem .9rem; } .chips a { padding: .25rem 0; color: var(--ink); } .chips a[aria-current] { box-shadow: inset 0 -2px var(--ink); font-weight: 600; }
#shown { padding: .35rem .75rem; } #shown:empty { display: none; }
dialog { padding: 0 .25rem; color: inherit; background: var(--card); border: 1px solid var(--edge); border-radius: 6px; } dialog button { justify-self: end; font: inherit; min-height: 28px; }

.title { display: grid; grid-template-columns: minmax(0, 1fr) auto; align-items: end; gap: .15rem 2rem; } .title .crumb { grid-column: 1 / -1; }
.title h1 { font-size: var(--title); font-weight: 680; line-height: 1.2; letter-spacing: -.02em; overflow-wrap: anywhere; } .title h1 a { color: inherit; text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: .14em; } .title h1 .rest { margin-left: .35rem; font-size: var(--large); font-weight: 400; color: var(--soft); }
.meta { display: flex; flex-wrap: wrap; gap: 0 1.1rem; color: var(--soft); } .meta b { font-weight: 500; color: var(--ink); }
.stats { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); }
.stat { position: relative; padding: .6rem .9rem .75rem; border-left: 1px solid var(--line); } .stat:first-child { border-left: 0; } .stat dt { font-size: var(--small); color: var(--soft); }
.stat dd { font-size: var(--title); font-weight: 600; line-height: 1.2; letter-spacing: -.02em; white-space: nowrap; } .stat dd small { margin-left: .15rem; font-size: var(--lead); letter-spacing: 0; }
.stat dd + dd { font-size: var(--small); font-weight: 400; letter-spacing: 0; line-height: 1.5; color: var(--soft); } .stat .bar { left: .9rem; bottom: .4rem; width: calc(100% - 1.8rem); }
.stat.hot dd:first-of-type { color: var(--warn); } .stat.old dd { color: var(--soft); }

.charts { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: var(--gap); }
.chart { padding-bottom: .3rem; } .chart h2 { font-size: var(--lead); }
.draw { display: grid; grid-template-columns: 68px minmax(0, 1fr); padding-right: 10px; } .plot { display: block; width: 100%; overflow: visible; }
.plot text { font: 11px system-ui, sans-serif; fill: var(--soft); paint-order: stroke; stroke: var(--card); stroke-width: 3px; stroke-linejoin: round; }
.plot .grid { stroke: var(--line); } .plot .base { stroke: var(--edge); } .plot .limit { stroke: var(--warn); stroke-dasharray: 5 3; } .plot text.limit { stroke: var(--card); stroke-dasharray: none; fill: var(--warn); }
.plot .fault { fill: var(--warn-solid); opacity: .16; } .plot .fault.unhealthy { fill: var(--bad-solid); opacity: .12; }
.plot .moment { stroke: var(--bad); stroke-width: 1.5; } .plot text.moment { fill: var(--bad); stroke: var(--card); font-weight: 600; }
.plot :is(.band-0, .band-1, .band-2, .band-3, .band-4, .band-5) { vector-effect: none; opacity: .35; shape-rendering: crispEdges; } .plot :is(.band-1, .band-3, .band-5) { stroke-dasharray: 2 2; opacity: .6; }
.plot path.area { fill: var(--fill); opacity: .55; stroke: none; }
${[0, 1, 2, 3, 4, 5].map((at) => `.plot :is(.line-${at}, .band-${at}) { stroke: var(--line-${at}); } .plot text.line-${at} { fill: var(--line-${at}); stroke: var(--card); }`).join(' ')}
.plot path:is(.line-0, .line-1, .line-2, .line-3, .line-4, .line-5) { stroke-linecap: round; } .plot path.line-0 { stroke-width: 1.75; } .plot path:is(.line-1, .line-2, .line-3, .line-5) { stroke-linecap: butt; } .plot path.line-1 { stroke-dasharray: 5 2; } .plot path.line-2 { stroke-dasharray: 2 2; } .plot path.line-3 { stroke-dasharray: 8 3; } .plot path.line-5 { stroke-dasharray: 8 2 2 2; }
${[0, 1, 2, 3, 4, 5].map((at) => `.state-${at} { --tone: color-mix(in srgb, var(--line-${at}) ${at === 0 ? 30 : 60}%, var(--card)); }`).join(' ')}
.plot path[class^="state"] { stroke: var(--tone); stroke-width: 18; stroke-linejoin: miter; } .plot text.word { fill: var(--ink); stroke: none; } .legend [class^="state"] i { height: 9px; vertical-align: -.05em; background: var(--tone); border: 0; }
.states, .states + details { margin-top: var(--gap); } .states .lane > .plot { align-self: center; }
.legend { display: flex; flex-wrap: wrap; gap: 0 .9rem; font-size: var(--small); } .legend i { display: inline-block; width: 14px; margin-right: .35em; vertical-align: .28em; border-top: 2px solid var(--line-0); }
.legend .line-1 i { border-top: 2px dashed var(--line-1); } .legend .line-2 i { border-top: 2px dotted var(--line-2); } .legend .line-3 i { border-top: 2px dashed var(--line-3); } .legend .line-4 i { border-color: var(--line-4); } .legend .line-5 i { border-color: var(--line-5); }
.strip { display: block; width: 100%; } .strip rect { fill: var(--sunk); } .strip .healthy { fill: color-mix(in srgb, var(--good) 72%, var(--card)); } .strip .degraded { fill: var(--warn-solid); } .strip :is(.unhealthy, .missing) { fill: var(--bad-solid); }
.lane { display: grid; grid-template-columns: 11rem minmax(0, 1fr); border-top: 1px solid var(--line); } .lane > div:first-child { padding: .45rem .75rem; } .lane b { display: block; font-weight: 600; } .lane .soft { font-size: var(--small); } .lane > .plot { border-left: 1px solid var(--line); } .lane .pod { fill: var(--sunk); stroke: var(--edge); }
.cursor { stroke: var(--edge); stroke-width: 1; }

.answers { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: var(--gap); }
.answer { display: grid; align-content: start; gap: .2rem; padding: .7rem .9rem .8rem; border-top: 3px solid var(--line); } .answer.ok { border-top-color: var(--good); } .answer.mind { border-top-color: var(--warn-solid); } .answer.bad { border-top-color: var(--bad-solid); }
.answer h2 { font-weight: 500; color: var(--soft); } .answer strong { font-size: var(--large); font-weight: 650; line-height: 1.25; }
.two { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); align-items: start; gap: var(--gap); } .two .num { white-space: normal; } .stack { display: grid; grid-template-columns: minmax(0, 1fr); gap: var(--gap); }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem 1rem; padding: .1rem .75rem .75rem; } .facts dt { color: var(--soft); } .facts dd { overflow-wrap: anywhere; }
.values { columns: 22rem; column-gap: 2rem; padding: 0 .75rem .5rem; } .values li { display: flex; flex-wrap: wrap; gap: 0 .5rem; padding: .15rem 0; break-inside: avoid; border-bottom: 1px solid var(--line); } .values b { font-weight: 500; } .values .num { margin-left: auto; }
summary { padding: .55rem .75rem; cursor: pointer; font-weight: 650; } details > .charts { padding: 0 .75rem .75rem; } details[open] > summary { margin-bottom: .5rem; border-bottom: 1px solid var(--line); }
.overview:has(.sockets) { grid-template: "map map" auto "pods table" 1fr / 27rem minmax(0, 1fr); }
.sockets { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(34rem, 100%), 1fr)); gap: .75rem; padding: 0 .75rem .75rem; } .sockets .link { grid-column: 1 / -1; padding: 0 .25rem .15rem; border-bottom: 3px double var(--edge); }
.socket { position: relative; display: flex; flex-wrap: wrap; align-content: start; gap: .5rem; padding: .5rem; background: var(--back); border: 1px solid var(--edge); border-radius: 6px; } .socket.joined::before { content: ""; position: absolute; left: 2rem; bottom: 100%; height: .75rem; border-left: 3px double var(--edge); }
.socket h3 { display: flex; flex-basis: 100%; gap: .5rem; font-size: var(--text); font-weight: 650; } .way { margin-left: auto; font-size: var(--tiny); font-weight: 650; letter-spacing: .04em; color: var(--ink); }
.box { display: grid; grid-template-columns: minmax(0, auto); align-content: start; gap: .35rem; padding: .35rem; background: var(--card); border: 1px dashed var(--edge); border-radius: 5px; max-width: 100%; } .box > p { display: flex; gap: .35rem; font-size: var(--tiny); } .box > div { display: flex; flex-wrap: wrap; gap: .35rem; } .box .tiles { display: flex; flex-wrap: wrap; align-content: start; gap: 5px; max-width: 100%; } .box .tile { width: 6.1rem; } .box .tile.many { width: 25rem; max-width: 100%; }
.ways { justify-content: flex-start; gap: .1rem 1.2rem; } .ways div { display: flex; gap: .35rem; } .ways dt { font-weight: 650; } .ways dd { color: var(--soft); }

@media (min-width: 68rem) and (max-width: 86rem) {
  .overview { grid-template-columns: 20rem minmax(0, 1fr); } #map .tiles { grid-template-columns: repeat(3, minmax(0, 1fr)); } #devices .pci { display: none; } .c1 { width: 19%; } .c2 { width: 11%; } .c3 { width: 18%; } .c4, .c5 { width: 15%; } .c6 { width: 16.5%; }
}
@media (max-width: 68rem) {
  .overview, .overview:has(.sockets) { grid-template: "map" "table" "pods" / minmax(0, 1fr); } .two, .say { grid-template-columns: minmax(0, 1fr); }
  .tiles { grid-template-columns: repeat(auto-fill, minmax(96px, 1fr)); } .answers { grid-template-columns: repeat(2, minmax(0, 1fr)); }
}
@media (max-width: 40rem) {
  :root { --gap: .75rem; --say: 1.1875rem; --title: 1.5rem; }
  .bar-top { flex-wrap: wrap; padding-top: .5rem; } .bar-top nav { order: 3; justify-content: space-between; width: calc(100% + .8rem); margin: 0 -.4rem; gap: 0; } .bar-top nav a { min-height: 40px; padding: .5rem .1rem; font-size: .875rem; }
  .say { padding: .75rem .8rem; } .cmd code { flex: 1; } .cmd button { min-height: 44px; }
  .tiles { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 5px; } .tile > a { padding-inline: 5px; } .tile .v { font-size: var(--lead); } .tile .v.word { font-size: var(--tiny); overflow-wrap: anywhere; } .box .tile:not(.many) { width: 4.55rem; } .box .tile > a { padding-inline: 4px; } .box .tile .n { gap: .2rem; }
  .chips a { padding: .7rem 0; } summary { padding: .8rem .75rem; } .filter :is(input[type=search], select, button) { height: 40px; } .filter input[type=search] { flex-basis: 60%; } .filter label { order: 2; flex: 1 1 100%; } .filter select { width: 100%; } .filter label span { display: none; }
  .charts, .title, .lane { grid-template-columns: minmax(0, 1fr); } .stats { grid-template-columns: repeat(3, minmax(0, 1fr)); } .stat { padding: .5rem .6rem .7rem; border-left: 0; overflow: hidden; } .stat .bar { left: .6rem; width: calc(100% - 1.2rem); } .stat dd { font-size: var(--large); white-space: normal; } .stat dd small { font-size: var(--small); }
  .answer { padding: .55rem .65rem; } .answer strong { font-size: 1.0625rem; } .lane > div:first-child { display: flex; flex-wrap: wrap; gap: 0 .6rem; padding-bottom: 0; } .lane > .plot { border-left: 0; }
  .fold, .fold tbody { display: block; } .fold thead, .fold colgroup { display: none; }
  .fold tr { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .8rem; padding: .4rem .7rem; border-top: 1px solid var(--line); }
  .fold th, .fold td, #devices.fold td { display: block; height: auto; padding: 0; border: 0; text-align: left; white-space: normal; overflow-wrap: anywhere; }
  #devices.fold tr:not(.why, .group) { display: grid; grid-template-columns: 8.6rem minmax(0, 1fr) minmax(0, 1fr); align-items: center; min-height: 40px; gap: 0 .5rem; } #devices.fold .opt, .pci, .ns { display: none; }
  #devices.fold tr.why { display: block; padding-top: 0; border: 0; } #devices.fold .part th { padding-left: 1.1rem; }
  :is(main, footer) :is(p, h1, th, td, li, dd, h3, pre) a:not(.cell), footer > a, .brand { display: inline-block; min-height: 24px; padding-block: .2rem; } .brand { display: flex; } .tile:not(.many) .cell { min-height: 24px; align-content: center; }
  .fold tr.bad { box-shadow: inset 4px 0 var(--bad-solid); } .fold tr.warn { box-shadow: inset 4px 0 var(--warn-solid); } .fold tr:is(.bad, .warn) > :first-child { box-shadow: none; }
  .fold td[data-label]::before { content: attr(data-label) " "; font-size: var(--small); color: var(--soft); }
}
@media (prefers-reduced-motion: no-preference) { .lvl rect, .bar rect { transition: y .4s, height .4s, width .4s; } }
@media (forced-colors: active) { .s::before, .tile, .cell, .strip rect, .plot path { forced-color-adjust: none; } }
@media print { .bar-top nav, .filter, .cmd button { display: none; } }
`;
