import { stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createQuestion, type QuestionAnswer, type QuestionContent } from './question.ts'
import { createTheme } from './theme.ts'

const theme = createTheme({ write() {}, warn() {}, env: {}, isTty: false, columns: 80 })
// Fake time: on a busy machine, real time would pass between two keys.
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const PAGE_DOWN = '\u001b[6~'

async function createWorld(content: Partial<QuestionContent>, rows = 24) {
  const answers: QuestionAnswer[] = []
  const early: string[] = []
  const question = createQuestion(
    { title: 'Allow it?', body: () => [], choices: [{ label: 'Yes' }, { label: 'No' }], ...content },
    {
      theme,
      readRows: () => rows,
      onAnswer: (answer) => void answers.push(answer),
      onEarlyKey: (data) => void early.push(data),
    },
  )
  question.handleInput?.('1')
  // Keys that were typed just before the question appeared do not answer it.
  await vi.advanceTimersByTimeAsync(310)
  const look = (width = 60): readonly string[] => question.render(width).map(stripVTControlCharacters)
  return { look, answers, early, press: (key: string) => question.handleInput?.(key) }
}

it('a long question says which lines it shows, also after a page down', async () => {
  const body = Array.from({ length: 61 }, (_, index) => `line ${index + 1}`)
  const { look, press } = await createWorld({ body: () => body })
  expect(look().join('\n')).toContain('  lines 1–11 of 61: page up, page down')
  press(PAGE_DOWN)
  expect(look().join('\n')).toContain('line 11\n')
  expect(look().join('\n')).toContain('  lines 11–21 of 61: page up, page down')
  for (let page = 0; page < 9; page += 1) press(PAGE_DOWN)
  expect(look().join('\n')).toContain('line 61\n  lines 51–61 of 61: page up, page down')
})

it('a choice is shown whole, on as many rows as it takes', async () => {
  const label = `Yes, and allow ${Array.from({ length: 9 }, (_, index) => `Bash(rule-${index}:*)`).join(', ')}`
  const { look } = await createWorld({ choices: [{ label }, { label: 'No' }] })
  const shown = look(40)
  expect(shown.join(' ').replaceAll(/\s+/g, ' ')).toContain(`1. ${label} 2. No`)
  expect(shown.every((line) => line.length <= 40)).toBe(true)
})

it('the keys say what escape does', async () => {
  expect((await createWorld({})).look().at(-1)).toBe('↑↓ choose · enter confirm · esc cancel')
  expect((await createWorld({ onEscape: 'interrupt' })).look().at(-1)).toMatch(/ · esc interrupt$/)
})

const CHOICES = [{ label: 'Yes' }, { label: 'Always' }, { label: 'No:', asksFor: 'why' }]

it('words that are typed at a question become its text, and never approve', async () => {
  const { press, answers, early } = await createWorld({ choices: CHOICES })
  for (const key of 'no, use 2 files') press(key)
  expect(early).toEqual(['1'])
  press('\r')
  expect(answers).toEqual([{ chosen: [2], text: 'no, use 2 files' }])
})

it('a digit answers if nothing follows it, and begins a text otherwise', async () => {
  const { press, answers } = await createWorld({ choices: CHOICES })
  for (const key of '2 files are wrong') press(key)
  press('\r')
  expect(answers).toEqual([{ chosen: [2], text: '2 files are wrong' }])
  const other = await createWorld({ choices: CHOICES })
  other.press('2')
  expect(other.answers).toEqual([])
  await vi.advanceTimersByTimeAsync(200)
  expect(other.answers).toEqual([{ chosen: [1], text: '' }])
})
