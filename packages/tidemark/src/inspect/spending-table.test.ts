import { expect, it } from 'vitest'
import { daysIn } from './spending-table.ts'

it.each([
  ['UTC', '2026-03-09T23:30:00.000Z', '2026-03-09'],
  ['Europe/Berlin', '2026-03-09T23:30:00.000Z', '2026-03-10'],
  ['UTC', 'no time', null],
])('the day in %s of %s', (zone, at, expected) => {
  expect(daysIn(zone)(at)).toBe(expected)
})

it.each([':/etc/localtime', ''])("a zone of %j is the machine's own", (zone) => {
  const at = '2026-03-09T12:00:00.000Z'
  expect(daysIn(zone)(at)).toBe(daysIn()(at))
})
