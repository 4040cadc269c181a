/** Real clients make the same tool calls with Tidemark as without it, until what the model is shown is first rewritten. */
import { sampleCases } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { aiSdkClients } from '../../bench/clients/agents/ai-sdk.ts'
import { anthropicClients } from '../../bench/clients/agents/anthropic-sdk.ts'
import type { RunCall } from '../../bench/clients/client.ts'
import { type RunSettings, runClient } from '../../bench/clients/run-client.ts'

const STEPS = 24
const LARGE = 200_000

/** Conversations by the seed of the coder: two that fit, and two that the window forces to be rewritten. */
const CONVERSATIONS: readonly Omit<RunSettings, 'isManaged'>[] = [
  { window: LARGE, steps: STEPS, coder: { seed: 'plain' } },
  {
    window: LARGE,
    steps: STEPS,
    coder: { seed: 'thinking', thinkingTokens: 150, parallel: 5, textTokens: 0 },
  },
  { window: 34_000, steps: STEPS, coder: { seed: 'large results', resultTokens: 4_000 } },
  { window: 34_000, steps: STEPS, coder: { seed: 'one at a time', resultTokens: 4_000, parallel: 1 } },
]

/** The ids differ between two runs. */
const listCalls = (calls: readonly RunCall[]) => calls.map(({ name, input }) => ({ name, input }))

const CLIENTS = [...anthropicClients.filter(({ caches }) => !caches), ...aiSdkClients]

const CASES = CLIENTS.flatMap((client) =>
  CONVERSATIONS.map((conversation) => [client.name, conversation.coder?.seed, client, conversation] as const),
)

// Seven of them have every client and every conversation.
describe('a client', () => {
  it.each(sampleCases(CASES, 7))('of %s makes the same calls: %s', async (_, __, client, conversation) => {
    const direct = await runClient(client, { ...conversation, window: LARGE, isManaged: false })
    const managed = await runClient(client, { ...conversation, isManaged: true, inMemory: true })
    expect(direct).toMatchObject({ error: null, steps: STEPS, refused: 0 })
    expect(managed).toMatchObject({ error: null, steps: STEPS, answer: direct.answer })
    // The first request that does not fit may be refused, as the client's own would be: the size is not known to the token.
    expect(managed.refused).toBeLessThanOrEqual(conversation.window < LARGE ? 1 : 0)
    expect(managed.callsBeforeRewrite !== null).toBe(conversation.window < LARGE)
    const shared = managed.callsBeforeRewrite ?? direct.calls.length
    expect(shared).toBeGreaterThan(5)
    expect(listCalls(managed.calls.slice(0, shared))).toEqual(listCalls(direct.calls.slice(0, shared)))
    expect(managed.door.remarks).toEqual([])
  })
})
