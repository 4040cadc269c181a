/** Cache markers that a host brings along, on messages, tools or the whole request: the four there may be are ours. */
import { describe, expect, it } from 'vitest'
import type { TurnHost } from '../../src/engine/host.ts'
import { readSessionState } from '../../src/engine/session-state.ts'
import { buildForkRequest } from '../../src/engine/side-call.ts'
import type { Block } from '../../src/log/block.ts'
import type { JsonObject } from '../../src/log/json.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import { toPayload } from '../../src/request/build-request.ts'
import { createScriptedHost, playTurn, reply, type ScriptedHost, text, toolCall } from './test-session.ts'

const MARK = { cache_control: { type: 'ephemeral' } }
const marked = (words: string): Block => ({ ...text(words), ...MARK })

async function talk(
  prompts: readonly (readonly Block[])[],
  changes: Partial<TurnHost> = {},
): Promise<ScriptedHost> {
  const made = createScriptedHost([reply(toolCall('a'))], changes)
  let state = await readSessionState(made.host.journal, 's')
  for (const prompt of prompts) {
    const { outcome } = await playTurn(state, { prompt }, made.host)
    expect(outcome).toMatchObject({ ok: true })
    state = outcome.state
  }
  return made
}

function markersIn(value: unknown): number {
  return JSON.stringify(value).split('"cache_control"').length - 1
}

describe('markers of others', () => {
  it('on every prompt do not come on top of ours, in this process or the next', async () => {
    const prompts = Array.from({ length: 8 }, (_, turn) => [marked(`Turn ${turn}.`)])
    const { host, asked } = await talk(prompts)
    const reopened = await playTurn(
      await readSessionState(host.journal, 's'),
      { prompt: [marked('More.')] },
      host,
    )
    expect(reopened.outcome.ok).toBe(true)
    expect(asked.map(({ payload }) => markersIn(payload)).every((count) => count >= 2 && count <= 4)).toBe(
      true,
    )
    expect(asked.at(-1)?.payload.messages[0]?.content).toEqual([text('Turn 0.')])
  })

  it('within a result, on a tool and on the request count as well', async () => {
    const tools: readonly JsonObject[] = ['A', 'B', 'C', 'D', 'E'].map((name) => ({
      name,
      input_schema: { type: 'object' },
      ...MARK,
    }))
    const { asked } = await talk([[text('Go.')], [text('On.')]], {
      readOfferedPrefix: () => ({ tools, model: 'model-a', parameters: { max_tokens: 100, ...MARK } }),
      runTool: () => ({ content: Array.from({ length: 5 }, (_, at) => marked(`line ${at}`)) }),
    })
    expect(asked.map(({ payload }) => markersIn(payload)).every((count) => count <= 4)).toBe(true)
    expect(asked[2]?.payload).not.toHaveProperty('cache_control')
  })

  it('in the question of a fork go too, and what was said since is found', async () => {
    const { host } = await talk([[marked('First.')]])
    const { outcome } = await playTurn(
      await readSessionState(host.journal, 's'),
      { prompt: [marked('Next.')] },
      host,
    )
    const made = buildForkRequest(
      outcome.state,
      { source: 'compact', messages: [{ role: 'user', content: [marked('Sum up.')] }] },
      host,
    )
    expect(made.ok && markersIn(toPayload(made.request))).toBe(1)
  })

  it('stay where caching is off: what was given is what is sent', async () => {
    const { asked } = await talk([[marked('First.')]], {
      policy: createPolicy({ switches: { promptCachingEnabled: false } }),
    })
    expect(asked[0]?.payload.messages).toEqual([{ role: 'user', content: [marked('First.')] }])
  })
})
