import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
/** Opaque items, such as encrypted reasoning, go back to the vendor and account that made them, and to no other. */
import { describe, expect, it } from 'vitest'
import type { TurnHost } from '../../src/engine/host.ts'
import { readSessionState, type SessionState } from '../../src/engine/session-state.ts'
import { type Block, toBlocks } from '../../src/log/block.ts'
import type { ProviderProfile } from '../../src/policy/provider-profile.ts'
import { createScriptedHost, LENIENT, playTurn, reply, text } from './test-session.ts'

const ORIGIN = { vendor: 'made-up', account: 'a1' }
const REASONING: Block = {
  type: 'thinking',
  thinking: 'Read first.',
  origin: { ...ORIGIN, item: { id: 'rs_1', sealed: 'x9' } },
}
const CALL: Block = {
  type: 'tool_use',
  id: 'call_1',
  name: 'Read',
  input: { path: 'a.ts' },
  origin: { ...ORIGIN, item: { id: 'fc_1' } },
}
const SEARCH: Block = {
  type: 'provider_item',
  origin: { ...ORIGIN, item: { type: 'web_search_call', id: 'ws_1' } },
}

function toProfile(origin: {
  readonly vendor: string | null
  readonly account: string | null
}): ProviderProfile {
  return defineMessagesProfile({
    origin,
    roles: { first: 'any', consecutive: 'merged', system: 'placed' },
    thinking: { closing: 'allowed', firstInModes: [], binding: 'model', signed: false },
  })
}

const settings = (model: string): Partial<TurnHost> => ({
  readOfferedPrefix: () => ({
    tools: [{ name: 'Read', input_schema: { type: 'object' } }],
    model,
    parameters: { max_tokens: 100 },
  }),
})

/** One turn with the made-up provider, which thinks, searches and calls a tool. */
async function workOnce(): Promise<{ readonly state: SessionState; readonly host: TurnHost }> {
  const { host } = createScriptedHost([reply(REASONING, SEARCH, CALL), reply(REASONING, text('Done.'))], {
    profile: toProfile(ORIGIN),
    ...settings('model-a'),
  })
  const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Look.' }, host)
  expect(outcome.ok).toBe(true)
  return { state: outcome.state, host }
}

async function sendNext(
  { state, host }: Awaited<ReturnType<typeof workOnce>>,
  profile: ProviderProfile,
  model: string,
): Promise<{ readonly blocks: readonly Block[]; readonly state: SessionState }> {
  const next = createScriptedHost([], { profile, ...settings(model) }, host.journal)
  const { outcome } = await playTurn(state, { prompt: 'Go on.' }, { ...next.host, ids: host.ids })
  expect(outcome.ok).toBe(true)
  const messages = next.asked[0]?.payload.messages ?? []
  return { blocks: messages.flatMap(({ content }) => toBlocks(content)), state: outcome.state }
}

const listTypes = (blocks: readonly Block[]): readonly string[] => blocks.map(({ type }) => type)

describe('opaque items of a provider', () => {
  it('go back unchanged to the vendor and account that made them', async () => {
    const { blocks } = await sendNext(await workOnce(), toProfile(ORIGIN), 'model-a')
    expect(blocks).toContainEqual(REASONING)
    expect(blocks).toContainEqual(SEARCH)
    expect(blocks).toContainEqual(CALL)
  })

  it('leave whole with a switch to another vendor, and the calls stay as plain calls', async () => {
    const { blocks } = await sendNext(await workOnce(), LENIENT, 'model-b')
    expect(listTypes(blocks)).toEqual(['text', 'tool_use', 'tool_result', 'text', 'text'])
    const { origin: _, ...plain } = CALL
    expect(blocks[1]).toEqual(plain)
  })

  it('leave whole where another account of the same vendor goes on with the same model', async () => {
    const { blocks } = await sendNext(await workOnce(), toProfile({ ...ORIGIN, account: 'a2' }), 'model-a')
    expect(listTypes(blocks)).toEqual(['text', 'tool_use', 'tool_result', 'text', 'text'])
  })

  it('stay in the log, and the record of the new prefix says which responses lost them', async () => {
    const { state } = await sendNext(await workOnce(), LENIENT, 'model-b')
    const records = state.session.records.toArray()
    expect(JSON.stringify(records)).toContain('"sealed":"x9"')
    const lost = records.flatMap((record) => ('clearedItems' in record ? [record.clearedItems] : []))
    expect(lost).toEqual([expect.arrayContaining([expect.any(String)])])
    expect(lost[0]).toHaveLength(2)
  })

  it('of the provider whose block shapes these are leave as well', async () => {
    const thinking: Block = { type: 'thinking', thinking: 'Read first.', signature: 's' }
    const { host } = createScriptedHost([reply(thinking, text('Done.'))], {
      profile: LENIENT,
      ...settings('model-b'),
    })
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Look.' }, host)
    const { blocks } = await sendNext({ state: outcome.state, host }, toProfile(ORIGIN), 'model-a')
    expect(listTypes(blocks)).toEqual(['text', 'text', 'text'])
  })
})
