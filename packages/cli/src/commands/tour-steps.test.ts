import picocolors from 'picocolors'
import type { SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { chooseSymbols, createTimeFormat, type Screen } from '../render/screen.ts'
import { headingStep, renderTourStep, rewriteStep, textStep, toTourStep } from './tour-steps.ts'

const screen: Screen = {
  columns: 60,
  colors: picocolors.createColors(false),
  symbols: chooseSymbols({}),
  time: createTimeFormat('UTC'),
}

const TEXT = 'The session goes on, with a simulated model and a context window of 40,000 tokens'

describe('a step of the tour', () => {
  it.each([
    [
      'a heading',
      headingStep(TEXT),
      `\nThe session goes on, with a simulated model and a context\nwindow of 40,000 tokens\n`,
    ],
    [
      'a line',
      textStep(TEXT),
      `  The session goes on, with a simulated model and a context\n  window of 40,000 tokens\n`,
    ],
    [
      'an act',
      rewriteStep(TEXT),
      `  * The session goes on, with a simulated model and a\n    context window of 40,000 tokens\n`,
    ],
  ])('%s is wrapped where the screen ends', (_, step, shown) => {
    expect(renderTourStep(step, screen)).toBe(shown)
  })

  it.each([
    [1, '1 earlier response'],
    [2, '2 earlier responses'],
  ])('counts %i', (amount, responses) => {
    const event: SessionEvent = { type: 'thinking-dropped', responses: amount }
    expect(toTourStep(event)?.text).toBe(
      `The provider rejected the thinking of ${responses}: removed it and sent the request again.`,
    )
  })
})
