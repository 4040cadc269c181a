import picocolors from 'picocolors'
import type { SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { momentsIn, type Screen, symbolsFor } from '../render/screen.ts'
import { act, line, scene, stepOf, stepText } from './tour-steps.ts'

const screen: Screen = {
  columns: 60,
  colors: picocolors.createColors(false),
  symbols: symbolsFor({}),
  moments: momentsIn('UTC'),
}

const TEXT = 'The session goes on, with a simulated model and a context window of 40,000 tokens'

describe('a step of the tour', () => {
  it.each([
    [
      'a heading',
      scene(TEXT),
      `\nThe session goes on, with a simulated model and a context\nwindow of 40,000 tokens\n`,
    ],
    [
      'a line',
      line(TEXT),
      `  The session goes on, with a simulated model and a context\n  window of 40,000 tokens\n`,
    ],
    [
      'an act',
      act(TEXT),
      `  * The session goes on, with a simulated model and a\n    context window of 40,000 tokens\n`,
    ],
  ])('%s is wrapped where the screen ends', (_, step, shown) => {
    expect(stepText(step, screen)).toBe(shown)
  })

  it.each([
    [1, '1 earlier response'],
    [2, '2 earlier responses'],
  ])('counts %i', (amount, responses) => {
    const event: SessionEvent = { type: 'thinking-dropped', responses: amount }
    expect(stepOf(event)?.text).toBe(
      `The provider rejected the thinking of ${responses}: removed it and sent the request again.`,
    )
  })
})
