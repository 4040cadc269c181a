/** The screen of chat: what keeps the terminal safe, quick and whole, broken on purpose. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const TRANSCRIPT = 'packages/cli/src/screen/transcript.ts'
const TRANSCRIPT_TEST = ['packages/cli/src/screen/transcript.test']
const SCREEN_TEST = ['packages/cli/src/screen/screen.test']
const GUARD_TEST = ['packages/cli/src/screen/terminal-guard.test']

export const mutants: readonly Mutant[] = [
  {
    name: 'screen-text-keeps-control-characters',
    law: 'is shown without doing so',
    file: TRANSCRIPT,
    find: "return sanitizeLines(text.replaceAll(COMMAND_STRING, '')).replaceAll",
    replace: "return text.replaceAll(COMMAND_STRING, '').replaceAll",
    tests: TRANSCRIPT_TEST,
  },
  {
    name: 'screen-keeps-a-dropped-reply',
    law: 'takes a reply back that broke off',
    file: TRANSCRIPT,
    find: 'state.remove(new Set(state.streaming.values()))',
    replace: '',
    tests: TRANSCRIPT_TEST,
  },
  {
    name: 'screen-never-retires-lines',
    law: 'a streamed token costs as many bytes',
    file: 'packages/cli/src/screen/transcript-view.ts',
    find: 'if (retired > 0) forgetTopLines(tui, retired)',
    replace: '',
    tests: SCREEN_TEST,
  },
  {
    name: 'screen-redraws-only-what-is-left',
    law: 'all of it is drawn again',
    file: 'packages/cli/src/screen/transcript-view.ts',
    find: 'redraw() {\n      firstId = 0',
    replace: 'redraw() {',
    tests: SCREEN_TEST,
  },
  {
    name: 'screen-question-answered-by-early-keys',
    law: 'keys typed just before do not answer it',
    file: 'packages/cli/src/screen/question.ts',
    find: 'if (performance.now() - openedAt < GUARD_MS) return',
    replace: '',
    tests: SCREEN_TEST,
  },
  {
    name: 'screen-question-over-a-panel',
    law: 'a question that comes while a panel is open waits',
    file: 'packages/cli/src/screen/screen.ts',
    find: 'await panels.waitForEnd()\n      return await askInPlace',
    replace: 'return await askInPlace',
    tests: SCREEN_TEST,
  },
  {
    name: 'screen-panel-passes-commands-on',
    law: 'text in a panel or a question can set colours and nothing else',
    file: 'packages/cli/src/screen/panel.ts',
    find: 'const text = keepColorsOnly(given)',
    replace: 'const text = given',
    tests: SCREEN_TEST,
  },
  {
    name: 'screen-raw-mode-after-a-crash',
    law: 'the terminal is given back',
    file: 'packages/cli/src/screen/terminal-guard.ts',
    find: 'if (guarded.stdin.isTTY === true) guarded.stdin.setRawMode?.(false)',
    replace: '',
    tests: GUARD_TEST,
  },
]
