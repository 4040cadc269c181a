import { createFakeJournal, type FakeJournalStore } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { MISSING_RESULT_TEXT } from '../../src/context/message-repair.ts'
import type { ModelFailure } from '../../src/engine/reply.ts'
import { readSessionState, refreshSessionState } from '../../src/engine/session-state.ts'
import { toBlocks } from '../../src/log/block.ts'
import { isKnownRecord } from '../../src/log/record.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import { createScriptedHost, logLines, playTurn, reply, text, toolCall } from './test-session.ts'

const OVERLOADED: ModelFailure = { kind: 'overloaded', retryable: true, message: 'Overloaded' }
const NO_RETRIES = { policy: createPolicy({ turn: { network: { retries: 0 } } }) }

const STRICT_TOOLS = [
  {
    name: 'Read',
    input_schema: {
      type: 'object',
      properties: { limit: { type: 'integer' } },
      required: ['limit'],
      additionalProperties: false,
    },
  },
]

describe('a turn', () => {
  it('goes on until no tool is called, and appends all it does', async () => {
    const { host, asked } = createScriptedHost([
      reply(text('I look.'), toolCall('a'), toolCall('b')),
      reply(text('Done.')),
    ])
    const { outcome, events } = await playTurn(
      await readSessionState(host.journal, 's'),
      { prompt: 'Look.' },
      host,
    )
    const log = ['user: Look.', 'system epoch', 'assistant: I look.', 'assistant: a', 'assistant: b']
    const results = ['user: result of a', 'user: result of b']
    expect([outcome.ok, logLines(outcome.state), asked.length]).toEqual([
      true,
      [...log, ...results, 'assistant: Done.'],
      2,
    ])
    expect(logLines(await readSessionState(host.journal, 's'))).toEqual(logLines(outcome.state))
    expect(events.filter(({ type }) => type === 'turn-ended')).toHaveLength(1)
  })

  it('writes the last block with the final usage, and those before it as they come', async () => {
    const { host } = createScriptedHost([reply(text('one'), text('two'), text('three'))])
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Count.' }, host)
    const replies = [...outcome.state.session.records].flatMap((record) =>
      isKnownRecord(record) && record.type === 'assistant' ? [record.message] : [],
    )
    expect(replies.map(({ stop_reason, usage }) => [stop_reason, usage?.output])).toEqual([
      [undefined, 1],
      [undefined, 1],
      ['done', 5],
    ])
  })

  it('runs tools side by side and writes each result when it is there', async () => {
    const waiting = new Map<string, () => void>()
    const { host } = createScriptedHost([reply(toolCall('slow'), toolCall('quick'))], {
      runTool: async ({ id }) => {
        if (id === 'slow') await new Promise<void>((done) => waiting.set(id, done))
        else queueMicrotask(() => setImmediate(() => waiting.get('slow')?.()))
        return { content: id }
      },
    })
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(logLines(outcome.state).slice(-3)).toEqual(['user: quick', 'user: slow', 'assistant: Done.'])
  })

  it('gives a tool the input that its schema asks for, and logs and sends it so', async () => {
    const ran: unknown[] = []
    const input = { limit: '5', note: 'x' }
    const { host, asked } = createScriptedHost([reply({ type: 'tool_use', id: 'a', name: 'Read', input })], {
      readOfferedPrefix: () => ({ tools: STRICT_TOOLS, model: 'model-a', parameters: { max_tokens: 100 } }),
      runTool: (call) => {
        ran.push(call.input)
        return { content: 'ok' }
      },
    })
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect([outcome.ok, ran]).toEqual([true, [{ limit: 5 }]])
    expect(JSON.stringify(asked[1]?.payload.messages[1])).toContain('"input":{"limit":5}')
    expect(JSON.stringify([...outcome.state.session.records])).not.toContain('"note"')
  })

  it('never gives a tool an input that does not fit, nor asks about it, and tells the model why', async () => {
    const asked: string[] = []
    const calls = [{}, { limit: 'five' }].map(
      (input, index) => ({ type: 'tool_use', id: `c${index}`, name: 'Read', input }) as const,
    )
    const { host } = createScriptedHost([reply(...calls)], {
      readOfferedPrefix: () => ({ tools: STRICT_TOOLS, model: 'model-a', parameters: { max_tokens: 100 } }),
      canUseTool: ({ id }) => {
        asked.push(id)
        return { decision: 'allow' }
      },
      runTool: () => {
        throw new Error('was run')
      },
    })
    const { outcome, events } = await playTurn(
      await readSessionState(host.journal, 's'),
      { prompt: 'Go.' },
      host,
    )
    const results = events.flatMap((event) => (event.type === 'tool-ended' ? [event.result] : []))
    expect([outcome.ok, asked]).toEqual([true, []])
    expect(results.map(({ content, is_error }) => [content, is_error])).toEqual([
      [expect.stringContaining('so the tool was not run: limit: is missing.'), true],
      [expect.stringContaining('limit: expected integer, got string.'), true],
    ])
  })

  it('tells the model of a tool that threw and of a call that broke off', async () => {
    const ran: string[] = []
    const runTool = ({ id }: { readonly id: string }): never => {
      ran.push(id)
      throw new Error('no such file')
    }
    const { host } = createScriptedHost([{ blocks: [toolCall('a'), toolCall('b')], stop: 'cut', cut: 1 }], {
      runTool,
    })
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    const results = [...outcome.state.session.records].flatMap((record) =>
      isKnownRecord(record) && record.type === 'user' ? toBlocks(record.message.content).slice(0, 1) : [],
    )
    const failed = results.filter(({ is_error }) => is_error === true).map(({ tool_use_id }) => tool_use_id)
    expect([ran, failed.toSorted()]).toEqual([['a'], ['a', 'b']])
  })

  it('sends a paused reply back as it is', async () => {
    const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
    const tools = [{ type: 'search_1', name: 'web_search' }]
    const offered = () => ({ tools, model: 'model-a', parameters: { max_tokens: 100 } })
    const { host, asked } = createScriptedHost([{ blocks: [text('I search.'), search], stop: 'paused' }], {
      readOfferedPrefix: offered,
    })
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect([outcome.ok, asked[1]?.payload.messages.at(-1)?.role]).toEqual([true, 'assistant'])
  })
})

describe('a turn that stops short', () => {
  it('tells a conflict, after which the session can catch up', async () => {
    const { host } = createScriptedHost([])
    const state = await readSessionState(host.journal, 's')
    await playTurn(state, { prompt: 'First.' }, host)
    const { outcome } = await playTurn(state, { prompt: 'Second.' }, host)
    expect(outcome).toMatchObject({ ok: false, reason: 'conflict', refusal: { position: 3 }, state })
    const caught = await refreshSessionState(host.journal, outcome.state)
    expect((await playTurn(caught, { prompt: 'Second.' }, host)).outcome.ok).toBe(true)
  })

  it('tells who else holds the session', async () => {
    const store: FakeJournalStore = new Map()
    const [one, other] = [createFakeJournal(store), createFakeJournal(store)]
    const first = createScriptedHost([], {}, one).host
    await playTurn(await readSessionState(one, 's'), { prompt: 'Mine.' }, first)
    const { host } = createScriptedHost([], {}, other)
    const { outcome } = await playTurn(await readSessionState(other, 's'), { prompt: 'Mine too.' }, host)
    expect(outcome).toMatchObject({ ok: false, reason: 'locked' })
  })

  it('keeps what an aborted reply had said, and settles its calls with the next prompt', async () => {
    const failure: ModelFailure = { kind: 'aborted', retryable: false, message: 'called off' }
    const { host } = createScriptedHost([{ blocks: [text('I begin.'), toolCall('a')], failure }])
    const first = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(first.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    const again = await readSessionState(host.journal, 's')
    const { outcome, events } = await playTurn(again, { prompt: 'Again.' }, host)
    expect(logLines(outcome.state).slice(2)).toEqual([
      'assistant: I begin.',
      'assistant: a',
      'system model_call',
      `user: ${MISSING_RESULT_TEXT}`,
      'user: Again.',
      'assistant: Done.',
    ])
    expect(events[0]).toMatchObject({ type: 'calls-settled', calls: [{ id: 'a' }] })
    expect(events[1]).toMatchObject({
      type: 'appended',
      records: [{ batch: { of: 2 } }, { batch: { of: 2 } }],
    })
  })

  it('keeps what was said when it was called off in the middle of a reply', async () => {
    const failure: ModelFailure = { kind: 'aborted', retryable: false, message: 'called off' }
    const { host } = createScriptedHost([{ blocks: [text('I begin.')], failure }])
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect([outcome.ok ? null : outcome.reason, ...logLines(outcome.state).slice(-2)]).toEqual([
      'aborted',
      'assistant: I begin.',
      'system model_call',
    ])
  })

  it('keeps the text that an aborted reply was in the middle of, and tells the model where it was stopped', async () => {
    const failure: ModelFailure = { kind: 'aborted', retryable: false, message: 'called off' }
    const { host } = createScriptedHost([{ blocks: [], openText: 'There are two ways: fir', failure }])
    await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    const again = await readSessionState(host.journal, 's')
    const { outcome } = await playTurn(again, { prompt: 'Take the first.' }, host)
    expect(logLines(outcome.state).slice(2)).toEqual([
      'assistant: There are two ways: fir',
      'system model_call',
      'user: The user interrupted your answer above; it ends where they stopped you.',
      'user: Take the first.',
      'assistant: Done.',
    ])
  })

  it('continues an aborted reply in the middle of its text, if no prompt is given', async () => {
    const failure: ModelFailure = { kind: 'aborted', retryable: false, message: 'called off' }
    const { host } = createScriptedHost([{ blocks: [text('One.')], openText: 'Tw', failure }])
    await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    const again = await readSessionState(host.journal, 's')
    const { outcome } = await playTurn(again, { prompt: null }, host)
    expect(logLines(outcome.state).slice(2)).toEqual([
      'assistant: One.',
      'assistant: Tw',
      'system model_call',
      'user: Your answer above was cut off. Continue it exactly where it stopped, without repeating anything.',
      'assistant: Done.',
    ])
  })

  it('keeps no white space of an aborted reply, and no text of one that broke off', async () => {
    const failure: ModelFailure = { kind: 'aborted', retryable: false, message: 'called off' }
    const broken: ModelFailure = { kind: 'auth', retryable: false, message: 'no' }
    for (const reply of [
      { blocks: [], openText: ' \n', failure },
      { blocks: [], openText: 'Tw', failure: broken },
    ]) {
      const { host } = createScriptedHost([reply])
      const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
      expect(logLines(outcome.state).filter((line) => line.startsWith('assistant'))).toEqual([])
    }
  })

  it('goes on without a prompt where one has not been answered', async () => {
    const { host, asked } = createScriptedHost([{ blocks: [], failure: OVERLOADED }], NO_RETRIES)
    const first = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    const { outcome } = await playTurn(first.outcome.state, { prompt: null }, host)
    expect([outcome.ok, asked[1]]).toEqual([true, asked[0]])
  })

  it('appends nothing when called off before it begins', async () => {
    const { host, asked } = createScriptedHost([])
    const state = await readSessionState(host.journal, 's')
    const { outcome } = await playTurn(state, { prompt: 'Go.', signal: { aborted: true } }, host)
    expect([outcome, asked]).toEqual([{ ok: false, reason: 'aborted', state }, []])
  })

  it('keeps the results of tools that ran when it was called off, and asks no more', async () => {
    const signal = { aborted: false }
    const { host, asked } = createScriptedHost([reply(toolCall('a'))], {
      runTool: () => {
        signal.aborted = true
        return { content: 'stopped half way' }
      },
    })
    const { outcome } = await playTurn(
      await readSessionState(host.journal, 's'),
      { prompt: 'Go.', signal },
      host,
    )
    expect([outcome.ok, asked.length, logLines(outcome.state).at(-1)]).toEqual([
      false,
      1,
      'user: stopped half way',
    ])
  })

  it('does not send what the provider would refuse', async () => {
    const { host, asked } = createScriptedHost([])
    const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: null }, host)
    expect([outcome.ok ? null : outcome.reason, asked]).toEqual(['invalid', []])
  })
})
