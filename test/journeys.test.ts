/** How many files a reader opens to follow a journey of ARCHITECTURE.md. The figures may fall; a decision raises one. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import type { JourneyFigures } from '../scripts/journeys/trace.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The most files that each journey may enter, and the most changes from one file to another. */
const LIMITS: Readonly<Record<string, JourneyFigures>> = {
  'prompt to bytes': { files: 80, changes: 249 },
  'automatic compaction': { files: 111, changes: 507 },
  inspect: { files: 77, changes: 303 },
  "client's request to bytes": { files: 84, changes: 277 },
  // Some runs have one change of file less.
  'chat turn with a question, CLI part': { files: 46, changes: 156 },
}

it('the five journeys enter no more files than their limits, with no more changes of file', () => {
  const hooks = ['--import', './scripts/journeys/trace-hooks.ts', '--conditions=tidemark-source']
  const printed = execFileSync(process.execPath, [...hooks, 'scripts/journeys/journeys.ts'], {
    cwd: root,
    encoding: 'utf8',
  })
  const figures = JSON.parse(printed) as Record<string, JourneyFigures | null>
  expect(Object.keys(figures)).toEqual(Object.keys(LIMITS))
  const over = Object.entries(LIMITS).flatMap(([name, limit]) => {
    const { files = 0, changes = 0 } = figures[name] ?? {}
    // No figures would mean that the journey was not followed.
    const isFollowed = files > 10 && changes > files
    return isFollowed && files <= limit.files && changes <= limit.changes
      ? []
      : [`${name}: ${files} files (${changes})`]
  })
  expect(over).toEqual([])
})
