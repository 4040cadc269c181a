/** Cached clearing (undocumented): results are deleted from the cached prefix while the messages stay the same. */
import { createManualClock, type Simulator } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import {
  assistant,
  call,
  MARK,
  postMessage,
  readUsageFigures,
  result,
  simulate,
  type TestResponse,
  TOOL,
  tokens,
  user,
} from './ask.ts'
import { COMPACT, REQUEST, summaryScript, WITH_COMPACTION_BETA } from './summaries.ts'

const IDS = ['toolu_0', 'toolu_1', 'toolu_2', 'toolu_3']

/** Calls and results with a reference each, a marker on the last, and a `cache_edits` block for the deletions. */
function turns(count: number, deleted: readonly string[] = []): readonly object[] {
  const all = IDS.slice(0, count).flatMap((id, index) => {
    const last = index === count - 1 ? MARK : {}
    return [assistant(call(id)), user({ ...result(id, tokens(1_000, id), last), cache_reference: id })]
  })
  const edits = { type: 'cache_edits', edits: deleted.map((id) => ({ type: 'delete', cache_reference: id })) }
  const more = deleted.length === 0 ? [] : [user(edits)]
  return [user(tokens(600)), ...all, ...more]
}

function send(simulator: Simulator, count: number, deleted: readonly string[] = []): Promise<TestResponse> {
  return postMessage(simulator, { tools: [TOOL], messages: turns(count, deleted) })
}

/** Tokens of a result: its text, and 8 for the frame around it. */
const RESULT = 1_008

describe('cached clearing', () => {
  it('keeps the cache hit without the deleted result', async () => {
    const simulator = simulate({ cachedClearing: true })
    const first = await send(simulator, 2)
    const told = await send(simulator, 3, ['toolu_0'])
    expect(told.body.usage.cache_deleted_input_tokens).toBe(RESULT)
    expect(readUsageFigures(told).read).toBe(readUsageFigures(first).write5m - RESULT)
  })

  it('accumulates, and is sent again with every request', async () => {
    const simulator = simulate({ cachedClearing: true })
    await send(simulator, 3)
    const one = await send(simulator, 3, ['toolu_0'])
    const two = await send(simulator, 4, ['toolu_0', 'toolu_1'])
    expect([one, two].map(({ body }) => body.usage.cache_deleted_input_tokens)).toEqual([RESULT, 2 * RESULT])
    expect(readUsageFigures(two).read).toBe(readUsageFigures(one).read - RESULT)
  })

  it('misses when a deletion is left out: the cached prefix no longer has the text', async () => {
    const simulator = simulate({ cachedClearing: true })
    await send(simulator, 3)
    await send(simulator, 3, ['toolu_0'])
    expect(readUsageFigures(await send(simulator, 3)).read).toBe(0)
  })

  it('deletes nothing once the cache has gone cold', async () => {
    const clock = createManualClock()
    const simulator = simulate({ cachedClearing: true, clock })
    const first = await send(simulator, 3)
    await clock.advance(301_000)
    const told = await send(simulator, 3, ['toolu_0'])
    expect(told.body.usage.cache_deleted_input_tokens).toBe(0)
    expect(readUsageFigures(told)).toEqual(readUsageFigures(first))
  })

  it('applies to a compaction on demand: the deleted result is not read', async () => {
    const simulator = simulate({ cachedClearing: true, script: summaryScript })
    await postMessage(simulator, { ...REQUEST, messages: turns(3) })
    const request = { ...REQUEST, ...COMPACT, messages: turns(3, ['toolu_0']) }
    const { body } = await postMessage(simulator, request, WITH_COMPACTION_BETA)
    const [whole, compacted] = simulator.requests.map(({ usage }) => usage)
    expect(body.content[0].type).toBe('compaction')
    expect(compacted?.cacheRead).toBe((whole?.write5m ?? 0) - RESULT)
  })

  it('rejects an unknown reference', async () => {
    const told = await send(simulate({ cachedClearing: true }), 2, ['toolu_9'])
    expect(told.status).toBe(400)
  })

  it('is rejected as unknown unless it is enabled', async () => {
    const told = await send(simulate(), 2)
    expect(told.body.error.message).toBe(
      'messages.2.content.0.tool_result.cache_reference: Extra inputs are not permitted',
    )
    const plain = await postMessage(simulate(), { messages: [user('x')] })
    expect(plain.body.usage).not.toHaveProperty('cache_deleted_input_tokens')
  })
})
