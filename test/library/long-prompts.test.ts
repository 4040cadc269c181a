/**
 * Prompts that fill most of the window, or more than it. What the provider takes is answered, whatever was estimated
 * before. What it refuses as too long comes back to the caller, and the session goes on without it.
 */
import { sampleCases } from '@tidemark/core/testing'
import { createSummarizer, withSummaries } from '@tidemark/simulator'
import { assistant, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createRandom } from '../golden/random.ts'
import {
  openTestSession,
  SESSION,
  type TestSession,
  type TestTidemarkOptions,
} from '../support/test-tidemark.ts'

const SENTENCE = 'The ledger keeps every sum in cents, so that no part of an account is lost to rounding.\n'

/** A text with so many tokens, as the provider counts them. */
function write(tokens: number): string {
  return SENTENCE.repeat(Math.ceil((tokens * 4) / SENTENCE.length)).slice(0, Math.floor(tokens) * 4)
}

const answers = withSummaries(() => ({ blocks: [{ type: 'text', text: 'Done.' }] }), createSummarizer())

function open(
  window: number,
  modelId = 'claude-sonnet-5-5',
  more: Partial<TestTidemarkOptions> = {},
): Promise<TestSession> {
  return openTestSession({ window, modelId, script: answers, ...more })
}

const ask = ({ session }: TestSession, prompt: string | null) => session.run(prompt, {}).outcome

/** What the model itself may take of the window, beside the prompt: system prompt, tools, and `max_tokens` on old ones. */
const MODELS = [
  ['claude-sonnet-4-5', 0.97],
  ['claude-sonnet-5-5', 0.97],
  ['claude-opus-5', 0.97],
  ['claude-opus-5-5', 0.97],
  ['claude-haiku-5-5', 0.97],
  ['claude-3-5-sonnet', 0.8],
] as const

describe.each(sampleCases(MODELS, 3))('a first prompt, on %s', (modelId, most) => {
  it.each([8_000, 32_000])('that fits a window of %i tokens is answered', async (window) => {
    for (const share of [0.45, 0.6, 0.75, most]) {
      const world = await open(window, modelId)
      const label = `${share} of the window`
      expect(await ask(world, write(window * share - 200)), label).toMatchObject({ ok: true })
      expect(
        world.simulator.requests.filter(({ status }) => status !== 200),
        label,
      ).toEqual([])
      expect(await ask(world, 'Go on.'), label).toMatchObject({ ok: true })
    }
  })

  it('that the provider refuses as too long is given back, and the next one is answered', async () => {
    for (const share of [1.01, 1.2, 3]) {
      const world = await open(32_000, modelId)
      const prompt = write(32_000 * share)
      const end = await ask(world, prompt)
      expect(end).toMatchObject({ ok: false, withdrawn: [prompt] })
      expect('message' in end && end.message).toMatch(/The prompt is not part of the conversation\. Split/)
      expect(world.session.messages()).toEqual([])
      expect(await ask(world, 'Something short.')).toMatchObject({ ok: true })
      expect(world.bodies.at(-1)).not.toContain('rounding')
    }
  })
})

it.each(
  sampleCases(
    [
      ['claude-sonnet-4-5', 200_000, 0.59],
      ['claude-opus-5', 200_000, 0.45],
      ['claude-opus-5', 200_000, 0.95],
      ['claude-opus-5', 1_000_000, 0.9],
    ] as const,
    2,
  ),
)(
  'on %s, a first prompt in a window of %i tokens that fills %f of it is answered',
  async (modelId, window, share) => {
    expect(await ask(await open(window, modelId), write(window * share))).toMatchObject({ ok: true })
  },
)

it.each([
  ['claude-sonnet-4-5', 0.59, 0],
  ['claude-sonnet-4-5', 0.92, 6],
  ['claude-opus-5', 0.45, 0],
  ['claude-opus-5', 0.92, 6],
])(
  'on %s, a table that fills %f of the window, though many more tokens are expected, is answered after %i prompts',
  async (modelId, share, earlier) => {
    const window = 32_000
    const world = await open(window, modelId)
    for (let part = 0; part < earlier; part += 1) await ask(world, `Part ${part}: ${write(1_500)}`)
    let table = ''
    for (let line = 0; table.length < window * share * 4; line += 1)
      table += `${line},${(line * 7_919) % 1_000_003},${line % 97}.${line % 89},2026-03-1${line % 10},;${line % 2}\n`
    expect(await ask(world, table.slice(0, window * share * 4))).toMatchObject({ ok: true })
    expect(await ask(world, 'Go on.')).toMatchObject({ ok: true })
  },
)

it('a prompt that is refused after others leaves the conversation as it was, and the log keeps it', async () => {
  const world = await open(32_000)
  await ask(world, 'The first question.')
  const before = world.session.messages()
  expect(await ask(world, write(36_000))).toMatchObject({ ok: false, reason: 'failed' })
  expect(world.session.messages()).toEqual(before)
  expect(JSON.stringify([...world.store.values()])).toContain('rounding')
  // An undo goes back before what the user did, not to the prompt that was too long.
  expect(await world.session.undo()).toMatchObject({ ok: false, reason: 'nothing-to-undo' })
})

it('a long prompt after a long conversation is answered, with a summary of what came before', async () => {
  const world = await open(32_000, 'claude-sonnet-4-5')
  for (let part = 0; part < 8; part += 1) await ask(world, `Part ${part}: ${write(2_000)}`)
  expect(await ask(world, write(26_000))).toMatchObject({ ok: true })
  expect(await ask(world, 'Go on.')).toMatchObject({ ok: true })
})

it('a session whose log ends with such prompts answers them, or gives them back', async () => {
  for (const [tokens, isAnswered] of [
    [25_000, true],
    [40_000, false],
  ] as const) {
    const world = await open(32_000)
    await world.session.append(user(write(tokens)))
    await world.session.close()
    const session = await world.tide.open(SESSION)
    const end = await session.run('Go on.').outcome
    expect(end).toMatchObject(isAnswered ? { ok: true } : { ok: false, withdrawn: [write(tokens), 'Go on.'] })
    expect(await session.run('Something short.').outcome).toMatchObject({ ok: true })
  }
})

it('in a loop of one’s own, a refused prompt is given back by refused, and next goes on', async () => {
  const world = await open(32_000)
  const { session } = world
  await session.append(user(write(36_000)))
  expect(await session.next()).toMatchObject({ ok: true })
  const error = {
    status: 400,
    body: JSON.stringify({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 36150 tokens > 32000 maximum' },
    }),
  }
  expect(await session.refused(error)).toMatchObject({ ok: false, withdrawn: [write(36_000)] })
  expect(await session.next()).toMatchObject({ ok: false, reason: 'invalid' })
  await session.append(user('Something short.'))
  expect(await session.next()).toMatchObject({ ok: true })
  // What cannot fit by any estimate is given back by `next` itself.
  await session.append(user(write(200_000)))
  expect(await session.next()).toMatchObject({
    ok: false,
    reason: 'full',
    withdrawn: ['Something short.', write(200_000)],
  })
})

it('a turn goes on where system prompt and tools alone are above the auto-compact threshold, as long as its requests fit', async () => {
  const { session } = await open(60_000, 'claude-sonnet-4-5', { system: write(42_500) })
  await session.append(user('Look at every part.'))
  for (let part = 0; part < 30; part += 1) {
    const request = await session.next({ tools: [{ name: 'Read', input_schema: { type: 'object' } }] })
    expect(request, `part ${part}`).toMatchObject({ ok: true })
    const tokens = request.ok ? Math.ceil(JSON.stringify(request.body).length / 4) : 0
    expect(tokens, `part ${part}`).toBeLessThan(60_000)
    const id = `call-${part}`
    await session.append(
      assistant({
        id: `reply-${part}`,
        model: 'claude-sonnet-4-5',
        content: [{ type: 'tool_use', id, name: 'Read', input: { file_path: `/part-${part}` } }],
        stop_reason: 'tool_use',
        usage: { input_tokens: tokens, output_tokens: 40 },
      }),
      user([{ type: 'tool_result', tool_use_id: id, content: write(300) }]),
    )
  }
})

it('with compaction switched off, a first prompt above the blocking line is sent all the same', async () => {
  const world = await open(32_000, 'claude-sonnet-4-5', { env: { DISABLE_COMPACT: '1' } })
  expect(await ask(world, write(30_000))).toMatchObject({ ok: true })
})

it.each(
  sampleCases(
    Array.from({ length: 12 }, (_, seed) => seed),
    3,
  ),
)('no session dies of its prompts, whatever their sizes (seed %i)', async (seed) => {
  const random = createRandom(`long-prompts/${seed}`)
  const [modelId] = MODELS[random.between(0, MODELS.length - 1)] ?? MODELS[0]
  const window = random.pick([8_000, 16_000, 32_000, 64_000])
  const world = await open(window, modelId)
  for (let step = 0; step < 6; step += 1) {
    const share = random.between(1, 130) / 100
    const prompt = random.chance(50) ? write(window * share) : random.text(window * share * 3)
    const tokens = Math.ceil(prompt.length / 4)
    const end = await ask(world, prompt)
    const label = `${modelId}, ${window}, step ${step}: ${tokens} tokens: ${end.ok ? '' : end.message}`
    // Beside the prompt there are a system prompt, tools, a summary of what came before, and room for an answer.
    if (tokens < window * 0.6) expect(end.ok, label).toBe(true)
    if (!end.ok) expect(end, label).toMatchObject({ withdrawn: [prompt] })
    expect(await ask(world, 'Something short.'), label).toMatchObject({ ok: true })
  }
})
