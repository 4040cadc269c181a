/** A thousand turns alone, in a window of 60,000 tokens, with one request in twenty failing. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { expectGoodRun, type UnattendedOptions, type UnattendedRun } from './unattended-run.ts'

it('an agent left alone for a thousand turns finishes its task, and its memory grows with what it was shown', async () => {
  const run = await runInOwnProcess({
    turns: 1_000,
    window: 60_000,
    resultTokens: 2_000,
    seed: 'thousand',
    faultEvery: 20,
    heapAt: [200, 1_000],
  })
  const { spent, billed, hitRate, events, heap, durationMs } = run
  console.log({ spent, billed: billed.cost.total, hitRate, events, heap, durationMs })
  expectGoodRun(run)
  expect(events.compactions).toBeGreaterThanOrEqual(15)
  expect(heap?.bytes).toBeLessThanOrEqual(2 * (heap?.appended ?? 0))
})

async function runInOwnProcess(options: UnattendedOptions): Promise<UnattendedRun> {
  const file = join(import.meta.dirname, 'unattended-process.ts')
  const args = ['--conditions=tidemark-source', file, JSON.stringify(options)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 64 * 1024 * 1024 })
  return JSON.parse(stdout) as UnattendedRun
}
