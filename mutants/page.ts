/** The page of `tidemark ui`: what makes its figures, its safety and its buttons true, broken on purpose. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const PAGE_TEST = ['packages/cli/test/page.test']

export const mutants: readonly Mutant[] = [
  {
    name: 'page-shows-another-figure',
    law: 'has the figures of inspect on every view',
    file: 'packages/page/src/chart/headline.ts',
    find: "{ name: 'Calls', text: String(apiCalls) }",
    replace: "{ name: 'Calls', text: String(apiCalls + 1) }",
    tests: PAGE_TEST,
  },
  {
    name: 'page-renders-texts-as-html',
    law: 'opens the exact content of a request',
    file: 'packages/page/src/views/request-panel.tsx',
    find: 'preview={preview} />}>\n      <pre>{text}</pre>',
    replace: 'preview={preview} />}>\n      <pre dangerouslySetInnerHTML={{ __html: text }} />',
    tests: PAGE_TEST,
  },
  {
    name: 'page-undo-button-does-nothing',
    law: 'undoes the newest compaction of a closed session',
    file: 'packages/page/src/views/undo-button.tsx',
    find: '.undo(page.id, target.id)\n      .catch(',
    replace:
      ".loadSession(page.id)\n      .then(() => ({ ok: true, message: 'It is undone.' }))\n      .catch(",
    tests: ['packages/cli/test/page-undo.test'],
  },
  {
    name: 'page-asks-another-host',
    law: 'lists sessions with the figures of inspect',
    file: 'packages/page/src/main.tsx',
    find: 'element.replaceChildren()',
    replace: "element.replaceChildren()\n  new Image().src = 'http://127.0.0.2:9/pixel.gif'",
    tests: PAGE_TEST,
  },
  {
    name: 'page-live-does-not-follow',
    law: 'follows a log that is being written',
    file: 'packages/page/src/data/use-loaded.ts',
    find: 'if (id === null || changed === id) reload()',
    replace: 'if (id === null && changed === id) reload()',
    tests: PAGE_TEST,
  },
  {
    name: 'page-answers-other-hosts',
    law: 'answers only this host',
    file: 'packages/page/src/server/page-http.ts',
    find: 'origins.filter((origin) => new URL(origin).host === headers.host)',
    replace: 'origins.filter(() => headers.host)',
    tests: PAGE_TEST,
  },
  {
    name: 'page-saves-texts',
    law: 'is one file without texts',
    file: 'packages/page/src/server/html-export.ts',
    find: 'departures: withText ? departures : departures.map(withoutDepartedTexts),',
    replace: 'departures: withText ? departures : departures,',
    tests: PAGE_TEST,
  },
  {
    name: 'page-paints-the-chart-for-the-pointer',
    law: 'moves the cursor and the tip over the drawing',
    file: 'packages/page/src/page.css',
    find: 'will-change: transform;',
    replace: 'will-change: auto;',
    tests: ['packages/cli/test/page-use.test'],
  },
  {
    name: 'page-saves-names-of-sources',
    law: 'has none of a single field',
    file: 'packages/page/src/server/html-export.ts',
    find: "return COMMON_SOURCES.test(kind) ? kind : 'other source'",
    replace: 'return kind',
    tests: ['packages/cli/test/page-privacy.test'],
  },
  {
    name: 'page-drag-ends-with-the-chart',
    law: 'zooms by a drag that ends outside the chart',
    file: 'packages/page/src/views/tide-chart.tsx',
    find: 'event.currentTarget.setPointerCapture(event.pointerId)\n',
    replace: '\n',
    tests: ['packages/cli/test/page-use.test'],
  },
  {
    name: 'page-link-answered-with-a-redirect',
    law: 'opens from a link on another site',
    file: 'packages/cli/src/ui/page-server.ts',
    find: '? REDIRECT : FORWARD',
    replace: '? REDIRECT : REDIRECT',
    tests: ['packages/cli/test/page-use.test'],
  },
  {
    name: 'what-left-forgotten-while-it-is-loaded-again',
    law: 'the question stays while the session grows',
    file: 'packages/page/src/views/departures-view.tsx',
    find: 'useLoaded(id, () => source.loadDepartures(id), version)',
    replace: 'useLoaded(version, () => source.loadDepartures(id))',
    tests: ['packages/cli/test/page-undo.test'],
  },
]
