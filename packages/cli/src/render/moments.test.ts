import { expect, it } from 'vitest'
import { momentsIn } from './moments.ts'

it.each([
  ['UTC', '2026-03-09T23:30:00.000Z', '2026-03-09 23:30'],
  ['Europe/Berlin', '2026-03-09T23:30:00.000Z', '2026-03-10 00:30'],
  ['UTC', 'not a time', '? ?'],
])('in %s, %s', (zone, at, expected) => {
  expect(momentsIn(zone).full(at)).toBe(expected)
})

it('takes the zone of the machine where the one given is none', () => {
  const at = '2026-03-09T12:00:00.000Z'
  expect(momentsIn(':/etc/localtime').full(at)).toBe(momentsIn(undefined).full(at))
})
