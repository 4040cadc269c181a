import { createUsage } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { ModelRunUsage } from '../log/reply-report.ts'
import { toCacheTokenCounts } from './cache-break-types.ts'

describe('toCacheFigures', () => {
  it('tells what was read and what is cached', () => {
    const usage = createUsage({ input: 5, output: 7, read: 1_000, short: 100, long: 200 })
    expect(toCacheTokenCounts(usage)).toEqual({
      first: { input: 5, cacheRead: 1_000, writeShort: 100, writeLong: 200, output: 7 },
      lastRead: 1_000,
      cached: 1_300,
      deleted: null,
      isCompacted: false,
    })
  })

  it('takes the first run for what was read and the last for what is cached: totals add all runs up', () => {
    const run = (read: number, short: number, kind: ModelRunUsage['kind'] = 'message'): ModelRunUsage => {
      return { ...createUsage({ input: 1, output: 1, read, short }), kind }
    }
    const parts = [run(1_000, 500), run(9, 9, 'other-model'), run(1_500, 200)]
    const usage = createUsage({ input: 2, output: 2, read: 2_500, short: 700, parts })
    const { first, cached } = toCacheTokenCounts(usage)
    expect([first.cacheRead, first.writeShort, cached]).toEqual([1_000, 500, 1_700])
  })

  it.each([
    { kind: 'compaction', is: true },
    { kind: 'message', is: false },
  ] as const)('a run of kind $kind: summarised by the provider is $is', ({ kind, is }) => {
    const usage = createUsage({ parts: [{ ...createUsage({ input: 1 }), kind }] })
    expect(toCacheTokenCounts(usage).isCompacted).toBe(is)
  })

  it('passes on what was deleted from the cached prefix', () => {
    expect(toCacheTokenCounts(createUsage({ removed: 40 })).deleted).toBe(40)
  })
})
