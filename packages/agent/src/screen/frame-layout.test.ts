import { expect, it } from 'vitest'
import { layOutFrame } from './frame-layout.ts'

const lines = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${name}${index}`)
const INPUT = ['-', '', '-']
const parts = {
  settled: lines('t', 20),
  pending: [],
  above: [''],
  input: INPUT,
  below: ['meter'],
  rows: 10,
  rowsToFill: null,
}

it('a short transcript is followed by the input', () => {
  const frame = layOutFrame({ ...parts, settled: lines('t', 2) })
  expect(frame).toEqual({ lines: ['t0', 't1', '', ...INPUT, 'meter'], leading: 2 })
})

it('a long transcript scrolls, and the meter is on the last row', () => {
  expect(layOutFrame(parts)).toEqual({ lines: [...lines('t', 20), '', ...INPUT, 'meter'], leading: 20 })
})

it('a question covers the transcript, whose newest lines stay visible, and scrolls nothing away', () => {
  const question = lines('q', 6)
  const frame = layOutFrame({ ...parts, settled: lines('t', 5), input: question, rowsToFill: 10 })
  expect(frame).toEqual({ lines: ['t3', 't4', '', ...question, 'meter'], leading: 0 })
})

it('rows that become free stay above the input, because what has scrolled away does not come back', () => {
  const few = { ...parts, settled: lines('t', 3) }
  expect(layOutFrame({ ...few, rowsToFill: 10 }).lines).toEqual([
    ...lines('t', 3),
    ...['', '', '', ...INPUT, 'meter'],
  ])
  // A terminal that has grown shows earlier rows again. They are above the frame and not part of it.
  expect(layOutFrame({ ...few, rowsToFill: 8 }).lines).toHaveLength(8)
})

it('what still runs is below the rest, is never scrolled away, and is shortened if there is no room', () => {
  const { lines: frame, leading } = layOutFrame({ ...parts, pending: lines('p', 9) })
  expect(frame).toEqual([...lines('t', 20), 'p0', 'p1', 'p2', '  … 6 more lines', '', ...INPUT, 'meter'])
  expect(leading).toBe(20)
})

it.each([
  [7, ['', ...lines('q', 6)]],
  [6, lines('q', 6)],
  [2, ['q4', 'q5']],
])('in %i rows the input comes first', (rows, visible) => {
  const { lines: frame } = layOutFrame({ ...parts, input: lines('q', 6), rows })
  expect(frame.slice(-rows)).toEqual(visible)
})
