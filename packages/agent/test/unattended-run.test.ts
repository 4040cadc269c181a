/**
 * Sixty-six turns alone, with one request in ten failing, and the memory of a session after a dozen compactions: what
 * holds of them holds of a thousand turns (`unattended-run.soak.ts`).
 */

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isFullRun } from '@tidemark/core/testing'
import { expect, it } from 'vitest'
import type { HeapGrowth } from './heap-growth.ts'
import { expectGoodRun, runUnattended } from './unattended-run.ts'

it('an agent left alone finishes its task although the provider fails again and again', async () => {
  const run = await runUnattended({
    turns: 66,
    window: 24_000,
    resultTokens: 800,
    seed: 'sixty',
    faultEvery: 10,
  })
  expectGoodRun(run)
  expect(run.events.compactions).toBeGreaterThanOrEqual(2)
  expect(run.faults).toMatchObject({ status: 3, cut: 2, 'error-event': 1, reset: 1 })
})

it.runIf(isFullRun())(
  'a session that is compacted again and again holds what it was shown, and no copies of it',
  async () => {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-compacting-'))
    try {
      // A process of its own, since other tests would change the heap meanwhile.
      const program = fileURLToPath(new URL('./compacting-process.ts', import.meta.url))
      const options = ['--conditions=tidemark-source', program, home]
      const { stdout } = await promisify(execFile)(process.execPath, options)
      const heap = JSON.parse(stdout) as HeapGrowth
      expect(heap.appended).toBeGreaterThan(1_000_000)
      // Texts with a character outside Latin-1, such as the summaries, need two bytes for each character.
      expect(heap.bytes).toBeLessThanOrEqual(2 * heap.appended)
    } finally {
      rmSync(home, { recursive: true, force: true, maxRetries: 10 })
    }
  },
)
