/** docs/events.md: its program runs, and its table has every event with the fields of its type. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { EVENTS_PAGE, updateEventsPage } from '../../scripts/event-table.ts'

it('docs/events.md lists every event with its fields (npm run events brings it up to date)', () => {
  const page = readFileSync(EVENTS_PAGE, 'utf8')
  expect(page.match(/^\| `/gm)?.length).toBeGreaterThan(50)
  expect(page).toContain('`compaction` (`id`, ')
  expect(page).toBe(updateEventsPage(page))
})
