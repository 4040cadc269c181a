import { chooseSymbols, createTimeFormat, type Screen } from '@tidemark/terminal/render/screen'
import picocolors from 'picocolors'
import { describe, expect, it } from 'vitest'
import {
  createTourEventStep,
  createTourHeading,
  createTourLine,
  formatCentsOrDollars,
  renderTourStep,
  type TourStep,
} from './tour-steps.ts'

function createTestScreen(locale: string): Screen {
  return {
    columns: 60,
    colors: picocolors.createColors(false),
    symbols: chooseSymbols({ LANG: locale }),
    time: createTimeFormat('UTC'),
  }
}

const TEXT = 'The session goes on, with a simulated model and a context window of 40,000 tokens'
const SIZES = { sizes: [1, 15_000, 30_000, 40_000], window: 30_000, isStopped: true }
const CHECK = { kind: 'check', text: 'All tests pass.' } as const

describe('a step of the tour', () => {
  it.each<[string, TourStep, string]>([
    [
      'a heading',
      createTourHeading(TEXT),
      `\nThe session goes on, with a simulated model and a context\nwindow of 40,000 tokens\n`,
    ],
    [
      'a line',
      createTourLine(TEXT),
      `  The session goes on, with a simulated model and a context\n  window of 40,000 tokens\n`,
    ],
    [
      'a line with a label',
      { kind: 'line', label: 'npx tidemark', text: 'shows what the command does for you' },
      `  npx tidemark               shows what the command does for\n                             you\n`,
    ],
    [
      'an act',
      createTourEventStep(TEXT),
      `  * The session goes on, with a simulated model and a\n    context window of 40,000 tokens\n`,
    ],
    ['a true statement', { ...CHECK, isTrue: true }, '  ✓ All tests pass.\n'],
    ['a false statement', { ...CHECK, isTrue: false }, '  ✗ All tests pass.\n'],
    ['a chart', { kind: 'chart', text: 'Sizes', ...SIZES }, '  Sizes\n  ▁▄██ ✗ refused\n'],
  ])('%s is wrapped where the screen ends', (_, step, shown) => {
    expect(renderTourStep(step, createTestScreen('en_US.UTF-8'))).toBe(shown)
  })

  it.each<[string, TourStep, string]>([
    ['an act', createTourEventStep('20k → 5k tokens …'), '  * 20k -> 5k tokens ...\n'],
    ['a true statement', { ...CHECK, isTrue: true }, '  ok All tests pass.\n'],
    ['a chart', { kind: 'chart', text: 'Sizes', ...SIZES }, '  Sizes\n  .:## NO refused\n'],
  ])('%s is ASCII where the terminal shows nothing else', (_, step, shown) => {
    expect(renderTourStep(step, createTestScreen('C'))).toBe(shown)
  })

  it.each([
    [0, '0.0 cents'],
    [0.0123, '1.2 cents'],
    [0.254, '25 cents'],
    [0.996, '$1.00'],
    [2.009, '$2.01'],
  ])('says %f dollars as people do', (dollars, text) => {
    expect(formatCentsOrDollars(dollars)).toBe(text)
  })
})
