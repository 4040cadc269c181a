/** The prompt caches of the simulated OpenAI APIs: what is read, written and billed. */
import { createManualClock, createSimulator, type Simulator } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { simulate, type TestResponse, tokens } from './ask.ts'
import { FUNCTION, NEW_MODEL, OLD_MODEL, postChat, postResponse, readPromptUsage } from './openai-requests.ts'

const MARK = { prompt_cache_breakpoint: { mode: 'explicit' } }

function user(text: string, more: object = {}): object {
  return { role: 'user', content: [{ type: 'input_text', text, ...more }] }
}

/** Sends requests one after the other, and returns what each read and wrote. */
async function send(
  simulator: Simulator,
  bodies: readonly object[],
): Promise<readonly (readonly number[])[]> {
  const all: (readonly number[])[] = []
  for (const body of bodies) all.push(readPromptUsage(await postResponse(simulator, body)).slice(1))
  return all
}

describe('the implicit cache of models before GPT-5.6', () => {
  it.each([
    ['1,023 tokens', 1_023 - 4, [0, 0]],
    ['1,024 tokens', 1_024 - 4, [1_024, 0]],
    ['1,151 tokens, in steps of 128', 1_151 - 4, [1_024, 0]],
    ['1,152 tokens', 1_152 - 4, [1_152, 0]],
  ])('reads of a prompt of %s what it may, and writes are free', async (_name, size, second) => {
    const body = { input: [user(tokens(size))] }
    expect(await send(simulate(), [body, body])).toEqual([[0, 0], second])
  })

  it('reads what a longer prompt has in common with an earlier one', async () => {
    const first = { input: [user(tokens(2_000))] }
    const longer = { input: [...first.input, user(tokens(500, 'y'))] }
    expect(await send(simulate(), [first, longer, longer])).toEqual([
      [0, 0],
      [1_920, 0],
      [2_432, 0],
    ])
  })

  it('reads a message up to where it was changed', async () => {
    const text = tokens(3_000)
    const changed = `${text.slice(0, 8_000)}!${text.slice(8_001)}`
    expect(await send(simulate(), [{ input: [user(text)] }, { input: [user(changed)] }])).toEqual([
      [0, 0],
      [1_920, 0],
    ])
  })

  it.each([
    ['another key', { prompt_cache_key: 'b' }],
    ['another model', { model: 'gpt-5' }],
    ['other tools', { tools: [FUNCTION] }],
    ['another effort', { reasoning: { effort: 'high' } }],
    ['another verbosity', { text: { verbosity: 'low' } }],
    ['another tier', { service_tier: 'flex' }],
    ['other instructions', { instructions: 'Be brief.' }],
  ])('reads nothing with %s', async (_name, change) => {
    const body = { input: [user(tokens(2_000))], prompt_cache_key: 'a' }
    const [, second] = await send(simulate(), [body, { ...body, ...change }])
    expect(second).toEqual([0, 0])
  })

  it('has text in common however it is written: as a string or as a part', async () => {
    const text = tokens(2_000)
    const written = [{ input: text }, { input: [{ role: 'user', content: text }] }, { input: [user(text)] }]
    const [, ...rest] = await send(simulate(), written)
    expect(rest).toEqual([
      [1_920, 0],
      [1_920, 0],
    ])
  })

  it('keeps a prompt for a day after its last use, in memory for five minutes', async () => {
    const clock = createManualClock()
    const simulator = simulate({ clock })
    const day = { input: [user(tokens(2_000))] }
    const memory = {
      input: [user(tokens(2_000, 'm'))],
      prompt_cache_retention: 'in_memory',
      model: OLD_MODEL,
    }
    await send(simulator, [day, memory])
    await clock.advance(4 * 60_000)
    expect(await send(simulator, [day, memory])).toEqual([
      [1_920, 0],
      [1_920, 0],
    ])
    await clock.advance(6 * 60_000)
    expect(await send(simulator, [day, memory])).toEqual([
      [1_920, 0],
      [0, 0],
    ])
    await clock.advance(25 * 3_600_000)
    expect(await send(simulator, [day])).toEqual([[0, 0]])
  })

  it('bills what is read at the lower price, and the same in usage and log', async () => {
    const simulator = simulate()
    const body = { input: [user(tokens(2_000))] }
    await send(simulator, [body, body])
    const [first, second] = simulator.requests
    expect(second?.usage).toEqual({ input: 84, cacheRead: 1_920, write5m: 0, write1h: 0, output: 1 })
    // gpt-5.1: 1.25, 0.125 and 10 dollars per million tokens of input, cached input and output.
    expect(first?.cost?.total).toBeCloseTo((2_004 * 1.25 + 10) / 1e6, 12)
    expect(second?.cost?.total).toBeCloseTo((84 * 1.25 + 1_920 * 0.125 + 10) / 1e6, 12)
  })
})

describe('the breakpoint cache of GPT-5.6 and later', () => {
  const base = { model: NEW_MODEL }

  it('writes the whole prompt by itself, and reads it as the start of a longer one', async () => {
    const first = { ...base, input: [user(tokens(2_000))] }
    const longer = { ...base, input: [...first.input, user(tokens(496, 'y'))] }
    expect(await send(simulate(), [first, longer])).toEqual([
      [0, 2_004],
      [2_004, 500],
    ])
  })

  it('reads no shorter prefix without a breakpoint', async () => {
    const first = { ...base, input: [user(tokens(2_000)), user(tokens(2_000, 'y'))] }
    const other = { ...base, input: [user(tokens(2_000)), user(tokens(2_000, 'z'))] }
    expect(await send(simulate(), [first, other])).toEqual([
      [0, 4_008],
      [0, 4_008],
    ])
  })

  it('reads up to an explicit breakpoint that an earlier request wrote', async () => {
    const first = { ...base, input: [user(tokens(2_000), MARK), user(tokens(2_000, 'y'))] }
    const other = { ...base, input: [user(tokens(2_000), MARK), user(tokens(2_000, 'z'))] }
    expect(await send(simulate(), [first, other])).toEqual([
      [0, 4_008],
      [2_004, 2_004],
    ])
  })

  it('writes nothing in explicit mode without a breakpoint, and only up to the last with one', async () => {
    const explicit = { ...base, prompt_cache_options: { mode: 'explicit' } }
    const without = { ...explicit, input: [user(tokens(2_000))] }
    const marked = { ...explicit, input: [user(tokens(2_000), MARK), user(tokens(100, 'y'))] }
    expect(await send(simulate(), [without, without, marked, marked])).toEqual([
      [0, 0],
      [0, 0],
      [0, 2_004],
      [2_004, 0],
    ])
  })

  it.each([
    ['the latest four explicit breakpoints', { mode: 'explicit' }, 4],
    ['the latest three and one of its own', { mode: 'implicit' }, 3],
  ])('writes %s', async (_name, prompt_cache_options, kept) => {
    const input = Array.from({ length: 6 }, (_, at) => user(tokens(1_996, `${at}`), MARK))
    const whole = { ...base, prompt_cache_options, input: [...input, user('end')] }
    const simulator = simulate()
    await postResponse(simulator, whole)
    const reads = await Promise.all(
      input.map(async (_each, at) => {
        const part = { ...base, prompt_cache_options: { mode: 'explicit' }, input: input.slice(0, at + 1) }
        return readPromptUsage(await postResponse(simulator, part))[1] > 0
      }),
    )
    expect(reads.filter(Boolean)).toHaveLength(kept)
    expect(reads.at(-1)).toBe(true)
  })

  it('finds what an earlier request wrote behind any number of messages, but considers only 80 breakpoints', async () => {
    const first = { ...base, input: [user(tokens(2_000))] }
    const many = (count: number, more: object): readonly object[] =>
      Array.from({ length: count }, (_, at) => user(`message ${at}`, more))
    const plain = { ...base, input: [...first.input, ...many(100, {})] }
    const marked = (count: number): object => ({ ...base, input: [...first.input, ...many(count, MARK)] })
    for (const [longer, read] of [
      [plain, 2_004],
      [marked(79), 2_004],
      [marked(80), 0],
    ] as const)
      expect((await send(simulate(), [first, longer]))[1]?.[0]).toBe(read)
  })

  it('has a minimum of 1,024 tokens', async () => {
    const [short, enough] = [1_023, 1_024].map((size) => ({ ...base, input: [user(tokens(size - 4))] }))
    expect(await send(simulate(), [short ?? {}, short ?? {}, enough ?? {}])).toEqual([
      [0, 0],
      [0, 0],
      [0, 1_024],
    ])
  })

  it('keeps entries for 30 minutes or 12 hours after their last use, and counts them apart', async () => {
    const clock = createManualClock()
    const simulator = simulate({ clock })
    const half = { ...base, input: [user(tokens(2_000))] }
    const long = { ...base, input: [user(tokens(2_000, 'l'))], prompt_cache_options: { ttl: '12h' } }
    const written: TestResponse = await postResponse(simulator, long)
    expect(written.body.usage.input_tokens_details.cache_write_tokens_details).toEqual({
      ttl_30m_tokens: 0,
      ttl_12h_tokens: 2_004,
    })
    await send(simulator, [half])
    await clock.advance(29 * 60_000)
    expect(await send(simulator, [half])).toEqual([[2_004, 0]])
    await clock.advance(29 * 60_000)
    expect(await send(simulator, [half])).toEqual([[2_004, 0]])
    await clock.advance(31 * 60_000)
    expect(await send(simulator, [half, long])).toEqual([
      [0, 2_004],
      [2_004, 0],
    ])
  })

  it('bills writes at 1.25 times the price of input', async () => {
    const simulator = simulate()
    await send(simulator, [{ ...base, input: [user(tokens(2_000))] }])
    const [request] = simulator.requests
    expect(request?.usage).toMatchObject({ input: 0, write5m: 2_004 })
    // gpt-5.6-sol: 4 dollars per million tokens of input, 20 of output.
    expect(request?.cost?.total).toBeCloseTo((2_004 * 5 + 20) / 1e6, 12)
  })

  it('can be warmed without an answer', async () => {
    const simulator = simulate()
    const input = [user(tokens(2_000))]
    const warm = await postResponse(simulator, { ...base, input, prompt_cache_options: { prewarm: true } })
    expect(warm.body).toMatchObject({ output: [], usage: { output_tokens: 0 } })
    expect(await send(simulator, [{ ...base, input }])).toEqual([[2_004, 0]])
  })

  it('is the same for Chat Completions', async () => {
    const simulator = simulate()
    const body = { ...base, messages: [{ role: 'user', content: tokens(2_000) }] }
    const figures = [await postChat(simulator, body), await postChat(simulator, body)].map(readPromptUsage)
    expect(figures).toEqual([
      [2_004, 0, 2_004],
      [2_004, 2_004, 0],
    ])
  })
})

describe('diagnostics', () => {
  const first = {
    model: NEW_MODEL,
    input: [user(tokens(2_000)), user(tokens(996, 'y'))],
    prompt_cache_key: 'a',
  }

  async function compare(change: object): Promise<unknown> {
    const simulator = simulate()
    const { id } = (await postResponse(simulator, first)).body
    const options = { prompt_cache_options: { comparison_response_id: id } }
    return (await postResponse(simulator, { ...first, ...options, ...change })).body.prompt_cache_diagnostics
  }

  it('say that a prompt could be read', async () => {
    expect(await compare({ input: [...first.input, user('more')] })).toEqual({ type: 'cache_hit' })
  })

  it.each([
    ['model_changed', { model: 'gpt-5.6-terra' }, 3_004],
    ['prompt_cache_key_changed', { prompt_cache_key: 'b' }, 3_004],
    ['service_tier_changed', { service_tier: 'flex' }, 3_004],
    ['reasoning_effort_changed', { reasoning: { effort: 'high' } }, 3_004],
    ['verbosity_changed', { text: { verbosity: 'low' } }, 3_004],
    ['text_format_changed', { text: { format: { type: 'json_object' } } }, 3_004],
    ['tools_changed', { tools: [FUNCTION] }, 3_004],
    ['input_changed', { input: [user(tokens(2_000)), user('other')] }, 1_000],
  ])('name %s', async (reason, change, missed) => {
    expect(await compare(change)).toEqual({
      type: 'cache_miss',
      reason,
      cache_missed_tokens: missed,
      comparison_reusable_tokens: 3_004,
    })
  })

  it('name a compaction', async () => {
    const simulator = simulate()
    const { id } = (await postResponse(simulator, first)).body
    const trigger = { ...first, input: [...first.input, { type: 'compaction_trigger' }] }
    const [item] = (await postResponse(simulator, trigger)).body.output
    const options = { prompt_cache_options: { comparison_response_id: id } }
    const after = await postResponse(simulator, { ...first, ...options, input: [item, user('on')] })
    expect(after.body.prompt_cache_diagnostics).toMatchObject({ reason: 'context_compacted' })
  })

  it('do not find an unknown response', async () => {
    const options = { prompt_cache_options: { comparison_response_id: 'resp_none' } }
    const { body } = await postResponse(simulate(), { ...first, ...options })
    expect(body.prompt_cache_diagnostics).toEqual({ type: 'comparison_response_not_found' })
  })
})

describe('the request log', () => {
  it('says why a request read less than an earlier one had left', async () => {
    const clock = createManualClock()
    const simulator = createSimulator({ clock })
    const body = { model: NEW_MODEL, input: [user(tokens(2_000)), user(tokens(1_000, 'y'))] }
    const changed = { ...body, input: [user(tokens(2_000)), user(tokens(1_000, 'z'))] }
    await send(simulator, [body, changed, { ...body, reasoning: { effort: 'high' } }])
    await clock.advance(31 * 60_000)
    await send(simulator, [body])
    expect(simulator.requests.map(({ cache }) => cache?.miss?.reason ?? null)).toEqual([
      null,
      'content-changed',
      'key-changed',
      'expired',
    ])
  })
})
