/** A session that another process takes up in mid-way goes on as this one would, whatever was cleared or is due. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createFileJournal } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { LongTalk } from './long-talk.ts'
import { SMALL, sized, wayNamed } from './ways.ts'

const MINUTE = 60_000

/** By way: how many calls before, and how long a pause. */
const MOMENTS: readonly (readonly [way: string, what: string, calls: number, pauseMs: number])[] = [
  ['budget', 'after a clearing', 60, 45_000],
  ['budget, thinking bound', 'after a clearing', 60, 45_000],
  ['idle', 'after a clearing', 40, 45_000],
  ['idle', 'when a clearing is due', 29, 61 * MINUTE],
  ['cached', 'with deletions that stand', 45, 45_000],
  ['cached', 'with deletions whose cache has lapsed', 45, 6 * MINUTE],
  ['native', 'after a clearing', 60, 45_000],
  ['native', 'before any', 30, 45_000],
  ['native', 'after more than an hour', 60, 61 * MINUTE],
]

describe('taken up by another process', () => {
  it.each(MOMENTS)(
    '%s, %s: the next request is the same, to the byte',
    async (way, _what, calls, pauseMs) => {
      const { here, there } = await bodiesAfter(way, calls, pauseMs)
      expect(there).toBe(here)
    },
  )
})

async function bodiesAfter(
  way: string,
  calls: number,
  pauseMs: number,
): Promise<{ readonly here: string; readonly there: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-clearing-'))
  const [home, copy] = [join(folder, 'home'), join(folder, 'copy')]
  const journal = createFileJournal({ home })
  try {
    const talk = await new LongTalk(sized(wayNamed(way), SMALL), { journal }).until(calls)
    await journal.close()
    cpSync(home, copy, { recursive: true })
    await talk.clock.advance(pauseMs)
    const prompt = 'What is left to do?'
    const there = bodyElsewhere({ home: copy, now: talk.clock.now(), way, prompt })
    return { here: await talk.nextBody(prompt), there }
  } finally {
    await journal.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function bodyElsewhere(given: object): string {
  const file = fileURLToPath(new URL('next-body.ts', import.meta.url))
  const command = ['--conditions=tidemark-source', file, JSON.stringify(given)]
  return execFileSync(process.execPath, command, { encoding: 'utf8', maxBuffer: 2 ** 28 })
}
