/** Processes that are killed while they prepare a summary or swap it in. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sampleCases } from '@tidemark/core/testing'
import { expect, it, onTestFinished } from 'vitest'
import { startChild } from '../../packages/tidemark/test/child-process.ts'
import { createKilledWorld, type KilledInput } from './killed-process.ts'

it.each(
  sampleCases(
    [
      ['summary-preparing', 0],
      ['summary-preparing', 3],
      ['summary-prepared', 0],
      ['summary-prepared', 5],
      ['compact', 0],
      ['rewritten', 0],
    ] as const,
    3,
  ),
)('a process killed %s, %i ms after it, leaves a session that opens and goes on', async (at, afterMs) => {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-killed-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }))
  const file = new URL('./killed-process.ts', import.meta.url).href
  const child = startChild(file, JSON.stringify({ home, at, afterMs } satisfies KilledInput))
  expect(await child.ended).toBe('SIGKILL')
  const { tide, tools } = createKilledWorld(home)
  const session = await tide.open('talk')
  const before = session.messages().length
  expect(before).toBeGreaterThan(0)
  expect(session.damage.filter(({ kind }) => kind !== 'torn-line' && kind !== 'incomplete-batch')).toEqual([])
  expect(await session.run('Go on.', tools).outcome).toMatchObject({ ok: true })
  await tide.close()
})
