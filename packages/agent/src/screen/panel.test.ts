import { stripVTControlCharacters } from 'node:util'
import { expect, it } from 'vitest'
import { createPanel, type PanelChoice, type PanelRow } from './panel.ts'
import { createTheme } from './theme.ts'

const theme = createTheme({ write() {}, warn() {}, env: {}, isTty: false, columns: 80 })
const KEYS = { home: '\u001b[H', end: '\u001b[F', down: '\u001b[B', pageDown: '\u001b[6~' }

function openPanel(rows: readonly PanelRow[], actions: readonly { key: string; label: string }[]) {
  const results: (PanelChoice | null)[] = []
  const panel = createPanel(
    { title: 'Title', rows: () => rows, actions },
    { theme, readRows: () => 14, onKey: (result) => results.push(result) },
  )
  const look = (width = 80): readonly string[] => panel.render(width).map(stripVTControlCharacters)
  const press = (...keys: readonly string[]): readonly string[] => {
    for (const key of keys) {
      panel.handleInput?.(key)
      look()
    }
    return look()
  }
  look()
  return { look, press, results }
}

const page = Array.from({ length: 30 }, (_, line) => ({ text: `Line ${line}` }))

it('a page that is longer than the screen says where it is, and which keys page', () => {
  const { look, press } = openPanel(page, [])
  expect(look().at(-1)).toBe('1–10 of 30 · page up, page down · esc close')
  expect(press(KEYS.pageDown).at(-1)).toBe('11–20 of 30 · page up, page down · esc close')
  expect(press(KEYS.end).at(-1)).toBe('21–30 of 30 · page up, page down · esc close')
  expect(openPanel(page.slice(0, 3), []).look().at(-1)).toBe('esc close')
})

it('a line that is too long continues below its own beginning', () => {
  const { look } = openPanel([{ text: '  one two three four' }], [])
  expect(
    look(12)
      .slice(2, 4)
      .map((line) => line.trimEnd()),
  ).toEqual(['  one two', '  three four'])
})

it('escape is named however narrow the screen is', () => {
  const actions = [
    { key: 'c', label: 'clear the result' },
    { key: 'p', label: 'pin the message' },
  ]
  const { look } = openPanel(page, actions)
  for (const width of [20, 40, 60, 80]) {
    const last = look(width).at(-1) ?? ''
    expect(last).toMatch(/esc close$/)
    expect(last.length).toBeLessThanOrEqual(width)
  }
})

it('something is done only to a row that is visible, also after Home twice', () => {
  const rows = [...page, ...Array.from({ length: 5 }, (_, row) => ({ text: `Row ${row}`, isChoice: true }))]
  const { press, results, look } = openPanel(rows, [{ key: 'c', label: 'clear' }])
  expect(look().at(-1)).toBe('1–10 of 35 · page up, page down · ↓ to the list · esc close')
  expect(press('c').join('\n')).toContain('❯ Row 0')
  expect(results).toEqual([])
  press(KEYS.down, 'c')
  expect(results).toEqual([{ key: 'c', choice: 1 }])
  press(KEYS.home, KEYS.home, 'c')
  expect(results).toHaveLength(1)
  expect(press().join('\n')).toContain('❯ Row 0')
})

it('keys typed before the panel is visible do nothing, except to close it', () => {
  const results: (PanelChoice | null)[] = []
  const panel = createPanel(
    {
      title: 'Title',
      rows: () => [{ text: 'Row', isChoice: true }],
      actions: [{ key: 'enter', label: 'take' }],
    },
    { theme, readRows: () => 14, onKey: (result) => results.push(result) },
  )
  panel.handleInput?.(KEYS.down)
  panel.handleInput?.('\r')
  expect(results).toEqual([])
  panel.render(80)
  panel.handleInput?.('\r')
  expect(results).toEqual([{ key: 'enter', choice: 0 }])
})
