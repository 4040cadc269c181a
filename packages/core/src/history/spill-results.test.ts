import { createFakeBlobs, SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_HISTORY_TOOL_NAME, NO_RETRIEVAL } from '../clearing/clear-candidates.ts'
import type { Block, ToolResultBlock } from '../log/block.ts'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import { restoreSpilledResults, type SpillInput, spillLargeResult } from './spill-results.ts'

const measure = (text: string): number => text.length
const paths = { historyTool: DEFAULT_HISTORY_TOOL_NAME, transcript: null }

function createResult(content: string | readonly Block[]): ToolResultBlock {
  return { type: 'tool_result', tool_use_id: 'call-1', content }
}

function createSpillInput(content: string | readonly Block[], more: Partial<SpillInput> = {}): SpillInput {
  const budgets = { threshold: 400, head: 30, tail: 20 }
  return {
    result: createResult(content),
    tool: 'Bash',
    policy: { ...DEFAULT_POLICY.spill, imageBytes: 50 },
    budgets,
    measure,
    blobs: createFakeBlobs(),
    paths,
    ...more,
  }
}

const LONG = Array.from({ length: 100 }, (_, index) => `line ${index}`).join('\n')
const image = (data: string): Block => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data },
})

describe('a large result', () => {
  it('shows its head and tail, and says how to read the rest', async () => {
    const outcome = await spillLargeResult(createSpillInput(LONG))
    const [{ blob = '' } = {}] = outcome.spilled
    expect(outcome.result.content).toBe(
      `line 0\nline 1\nline 2\nline 3\n[746 of 789 characters are not shown here. To read it, call history with {"id":"${blob}"}. Add "lines" or "text" to find a part.]\nline 98\nline 99`,
    )
    expect(outcome.spilled).toEqual([{ toolUseId: 'call-1', part: null, blob, holds: 'text', bytes: 789 }])
  })

  it('of blocks is moved out block by block, large images too', async () => {
    const blocks = [
      { type: 'text', text: 'short' },
      image('x'.repeat(60)),
      { type: 'text', text: LONG, more: 1 },
      image('y'),
    ]
    const { result: shown, spilled } = await spillLargeResult(createSpillInput(blocks))
    expect(spilled.map(({ part, holds }) => [part, holds])).toEqual([
      [1, 'block'],
      [2, 'text'],
    ])
    const parts = shown.content as readonly Block[]
    expect([parts[0], parts[3]]).toEqual([blocks[0], blocks[3]])
    expect(parts[1]).toEqual({
      type: 'text',
      text: `[A large image (60 bytes, image/png) was moved out of the context. To read it, call history with {"id":"${spilled[0]?.blob}"}.]`,
    })
    expect(parts[2]?.more).toBe(1)
  })

  it.each<[string, Partial<SpillInput>, string]>([
    ['where the model has no way to read the rest', { paths: NO_RETRIEVAL }, LONG],
    [
      'where only a transcript is there, which would not hold it',
      { paths: { historyTool: null, transcript: '/log' } },
      LONG,
    ],
    ['of the history tool itself', { tool: DEFAULT_HISTORY_TOOL_NAME }, LONG],
    ['of a tool that is excepted', { policy: { ...DEFAULT_POLICY.spill, exceptTools: ['Bash'] } }, LONG],
    ['where it is switched off', { policy: { ...DEFAULT_POLICY.spill, enabled: false } }, LONG],
    ['at the threshold', { budgets: { threshold: LONG.length, head: 30, tail: 20 } }, LONG],
    [
      'where showing less would take more',
      { budgets: { threshold: 100, head: 90, tail: 9 } },
      LONG.slice(0, 110),
    ],
  ])('stays whole %s', async (_, more, text) => {
    const asked = createSpillInput(text, more)
    const outcome = await spillLargeResult(asked)
    expect(outcome).toEqual({ result: asked.result, spilled: [], failed: [] })
    expect(outcome.result).toBe(asked.result)
  })

  it('stays whole and is reported where it cannot be stored', async () => {
    const full = { put: () => Promise.reject(new Error('disk full')) }
    expect(await spillLargeResult(createSpillInput(LONG, { blobs: full }))).toEqual({
      result: createResult(LONG),
      spilled: [],
      failed: ['disk full'],
    })
    const { failed, spilled } = await spillLargeResult(createSpillInput(`${LONG}\ud800`))
    expect([failed, spilled]).toEqual([
      ['the text contains half a surrogate pair, which a blob cannot store'],
      [],
    ])
  })

  it('is not stored where showing its ends would save nothing', async () => {
    const blobs = createFakeBlobs()
    let stored = 0
    const counting = {
      put: (bytes: Uint8Array) => {
        stored += 1
        return blobs.put(bytes)
      },
    }
    const budgets = { threshold: 100, head: 60, tail: 40 }
    const outcome = await spillLargeResult(createSpillInput('x'.repeat(120), { budgets, blobs: counting }))
    expect([outcome.spilled, stored]).toEqual([[], 0])
  })

  it.each([7, -1, 0.5, undefined, '0', null])(
    'stays as it is shown where its log names a part that is not there: %s',
    async (part) => {
      const blobs = createFakeBlobs()
      const blob = await blobs.put(new TextEncoder().encode('the whole text'))
      const shown = createResult([{ type: 'text', text: 'head' }])
      const spilled = [{ toolUseId: 'call-1', part, blob, holds: 'text', bytes: 14 }]
      const record = new SessionBuilder().user([shown], { spilled: spilled as never })
      expect((await restoreSpilledResults(record, blobs)).message.content).toEqual([shown])
    },
  )

  it('comes back byte for byte, whatever it was', async () => {
    const small = fc.string({ unit: 'binary', maxLength: 40 })
    const large = fc.string({ unit: 'binary', minLength: 600, maxLength: 700 })
    const text = fc.oneof(small, large)
    const picture = fc
      .oneof(fc.string({ maxLength: 40 }), fc.string({ minLength: 60, maxLength: 80 }))
      .map(image)
    const block = fc.oneof(
      text.map((given) => ({ type: 'text', text: given, citations: null })),
      picture,
    )
    const blobs = createFakeBlobs()
    let aside = 0
    await fc.assert(
      fc.asyncProperty(fc.oneof(text, fc.array(block, { maxLength: 4 })), async (content) => {
        const { result: shown, spilled } = await spillLargeResult(createSpillInput(content, { blobs }))
        const record = new SessionBuilder().user([shown], { spilled: spilled as never })
        const whole = await restoreSpilledResults(record, blobs)
        expect(whole.message.content).toEqual([createResult(content)])
        aside += spilled.length
      }),
      { numRuns: 60 },
    )
    expect(aside).toBeGreaterThan(8)
  })
})
