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

const TEXT = 'The same session goes on, with a simulated model and a window of 40,000 tokens'

describe('a step of the tour', () => {
  it.each([
    [
      'a heading',
      scene(TEXT),
      `\nThe same session goes on, with a simulated model and a\nwindow of 40,000 tokens\n`,
    ],
    [
      'a line',
      line(TEXT),
      `  The same session goes on, with a simulated model and a\n  window of 40,000 tokens\n`,
    ],
    [
      'an act',
      act(TEXT),
      `  * The same session goes on, with a simulated model and a\n    window of 40,000 tokens\n`,
    ],
  ])('%s is wrapped where the screen ends', (_, step, shown) => {
    expect(stepText(step, screen)).toBe(shown)
  })

  it.each([
    [1, '1 earlier response'],
    [2, '2 earlier responses'],
  ])('counts %i', (responses, words) => {
    const event: SessionEvent = { type: 'thinking-dropped', responses }
    expect(stepOf(event)?.text).toBe(
      `the provider does not know the thinking of ${words}: left out, asked again`,
    )
  })
})
