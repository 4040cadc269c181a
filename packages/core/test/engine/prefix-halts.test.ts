/** A host that cannot give its prefix: the turn ends with words that name what failed, and can be taken up again. */
import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { readHostPrefix } from '../../src/engine/announce-updates.ts'
import type { TurnHost } from '../../src/engine/host.ts'
import { applyRecords, readSessionState } from '../../src/engine/session-state.ts'
import type { JsonObject } from '../../src/log/json.ts'
import { orderPromptSections, section } from '../../src/request/system-prompt.ts'
import { createScriptedHost, logLines, openTestSession, playTurn, toolCall } from './test-session.ts'

const SCHEMA = { type: 'object' }
const GOOD = { tools: [], model: 'model-a', parameters: { max_tokens: 100 } }

function withTool(tool: unknown): Partial<TurnHost> {
  return { readOfferedPrefix: () => ({ ...GOOD, tools: [tool as JsonObject] }) }
}

function withSection(compute: () => unknown): Partial<TurnHost> {
  return { sections: orderPromptSections({ sections: [section('git', compute as () => string)] }) }
}

describe('a turn whose prefix cannot be had', () => {
  it.each<[string, Partial<TurnHost>, string]>([
    [
      'a section throws',
      withSection(() => {
        throw new Error('no git')
      }),
      'Section "git" could not be computed: no git',
    ],
    [
      'a section rejects without a word',
      withSection(() => Promise.reject(new Error(''))),
      'Section "git" could not be computed: no reason was given',
    ],
    ['a section gives no text', withSection(() => 7), 'Section "git" gave no text: number.'],
    [
      'a tool has a function in it',
      withTool({ name: 'Read', input_schema: SCHEMA, run: () => 'x' }),
      'run of tool Read is no JSON value: give only what JSON can say.',
    ],
    [
      'a schema is no plain object',
      withTool({ name: 'Read', input_schema: { ...SCHEMA, since: new Date(0) } }),
      'input_schema.since of tool Read is no JSON value: give only what JSON can say.',
    ],
  ])('ends: %s', async (_, changes, message) => {
    const { host, asked } = createScriptedHost([], changes)
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(outcome).toMatchObject({ ok: false, reason: 'prefix', message })
    expect([asked.length, logLines(outcome.state)]).toEqual([0, ['user: Go.']])
    const mended = createScriptedHost([], {}, host.journal)
    const again = await playTurn(outcome.state, { prompt: null }, { ...mended.host, ids: host.ids })
    expect(again.outcome.ok).toBe(true)
  })

  it('takes fields that say nothing for what they are', async () => {
    const { host, asked } = createScriptedHost(
      [],
      withTool({
        name: 'Read',
        description: undefined,
        input_schema: { ...SCHEMA, properties: { path: { type: 'string', title: undefined } } },
      }),
    )
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(outcome.ok).toBe(true)
    expect(asked[0]?.payload.tools).toEqual([
      {
        name: 'Read',
        input_schema: { ...SCHEMA, properties: { path: { type: 'string' } } },
        cache_control: { type: 'ephemeral' },
      },
    ])
  })
})

describe('a host that offers no tools', () => {
  it('declares those that the messages call, and searches each frozen message once', async () => {
    const builder = new SessionBuilder()
    const call = (id: string, name: string): void => {
      builder.user(`Use ${name}.`)
      builder.assistant(id, [toolCall(id, name)])
      builder.result(id, 'done')
      builder.answer()
    }
    call('a', 'Read')
    call('b', 'Bash')
    const { run } = await openTestSession(builder.records, { host: { readOfferedPrefix: () => GOOD } })
    const listNames = async (): Promise<unknown> => {
      const prefix = await readHostPrefix(run)
      return 'ok' in prefix ? prefix : prefix.usedTools?.map(({ name }) => name)
    }
    expect(await listNames()).toEqual(['Read', 'Bash'])
    const searched = run.state.calledTools?.frozen.toArray() ?? []
    expect(searched.length).toBeGreaterThan(4)
    for (const { message } of searched)
      Object.defineProperty(message, 'content', {
        get: () => {
          throw new Error('searched again')
        },
      })
    const known = builder.records.length
    call('c', 'Edit')
    run.state = applyRecords(run.state, builder.records.slice(known), builder.records.length)
    expect(await listNames()).toEqual(['Read', 'Bash', 'Edit'])
  })
})
