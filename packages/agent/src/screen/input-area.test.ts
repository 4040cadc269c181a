import { stripVTControlCharacters } from 'node:util'
import { visibleWidth } from '@earendil-works/pi-tui'
import { expect, it } from 'vitest'
import { decorateInputLines, drawStatus, INPUT_PLACEHOLDER } from './input-area.ts'
import { createTheme } from './theme.ts'

const theme = createTheme({ write() {}, warn() {}, env: {}, isTty: false, columns: 80 })
const at = { width: 60, theme, now: 0, isAsking: false }

it('the status names what runs and for how long, also if its text is long', () => {
  const running = { text: `running Bash ${'x'.repeat(90)}`, progress: ' · 5 s' }
  const [, line = ''] = drawStatus({ status: running, queue: [], meter: null, hint: '' }, at)
  expect(stripVTControlCharacters(line)).toMatch(/^⠋ running Bash x+… · 5 s · esc interrupts$/)
  expect(visibleWidth(line)).toBe(60)
})

it('while a question is open the status says so, and what runs when it is answered', () => {
  const state = {
    status: { text: 'running Bash make', progress: ' · 1 s' },
    queue: [],
    meter: null,
    hint: '',
  }
  expect(drawStatus(state, { ...at, isAsking: true })).toEqual(['', '  waiting for your answer'])
  expect(drawStatus(state, at)[1]).toContain('running Bash make · 1 s')
})

it('the input has a prompt sign, and before the first prompt a placeholder', () => {
  const lines = ['──', `  [cursor]${' '.repeat(60)}`, '──']
  const input = { isEmpty: true, isAsking: false, hint: INPUT_PLACEHOLDER, theme }
  expect(decorateInputLines(lines, input)[1]).toBe(`❯ [cursor]${INPUT_PLACEHOLDER}`)
  expect(decorateInputLines(lines, { ...input, isEmpty: false })[1]).toMatch(/^❯ \[cursor\] +$/)
  expect(decorateInputLines(lines, { ...input, isAsking: true })).toEqual(lines)
  // A screen that is too narrow for the placeholder shows none.
  expect(decorateInputLines(['─', '  x ', '─'], input)[1]).toBe('❯ x ')
})
