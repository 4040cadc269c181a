import { describe, expect, it } from 'vitest'
import { assistant, call, context, readReplyText, request, result, user } from '../../test/script-request.ts'
import { parseScenario } from './parse-scenario.ts'
import { playScenario } from './scenario.ts'
import type { Script } from './script.ts'

function scripted(source: string): Script {
  const parsed = parseScenario(source, 'test.yaml')
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  return playScenario(parsed.scenario)
}

/** Returns the texts of the responses to this many requests. */
async function texts(
  script: Script,
  count: number,
  given: Parameters<typeof request>[0] = {},
): Promise<readonly string[]> {
  const all: string[] = []
  for (let index = 0; index < count; index += 1)
    all.push(await readReplyText(script, given, { index, turn: index }))
  return all
}

async function reply(source: string, given: Parameters<typeof request>[0] = {}) {
  return scripted(source)(request(given), context({ turn: 2, index: 6 }))
}

describe('turns in order', () => {
  it('answer one request each', async () => {
    const script = scripted('turns: [{text: a}, {text: b}, {text: c}]')
    expect(await texts(script, 3)).toEqual(['a', 'b', 'c'])
  })

  it('answer several requests with times', async () => {
    const script = scripted('turns: [{text: a, times: 2}, {text: b, times: forever}]')
    expect(await texts(script, 5)).toEqual(['a', 'a', 'b', 'b', 'b'])
  })

  it('start again with repeat', async () => {
    const script = scripted('{turns: [{text: a, times: 2}, {text: b}], repeat: 2, otherwise: {text: z}}')
    expect(await texts(script, 8)).toEqual(['a', 'a', 'b', 'a', 'a', 'b', 'z', 'z'])
  })

  it('repeat forever', async () => {
    expect((await texts(scripted('{turns: [{text: a}, {text: b}], repeat: forever}'), 101)).at(-1)).toBe('a')
  })

  it('are followed by an error that clients do not retry', async () => {
    const script = scripted('{name: Login, turns: [{text: a}]}')
    await readReplyText(script)
    expect(await script(request(), context())).toEqual({
      blocks: [],
      fault: {
        type: 'status',
        status: 400,
        message:
          'Login has no answer left: its 1 turns in order are used up. Add turns, "repeat" or "otherwise".',
      },
    })
  })

  it('are played separately for each session', async () => {
    const script = scripted('turns: [{text: a}, {text: b}]')
    const one = { headers: { 'x-simulator-session': '1' } }
    const other = { headers: { 'x-simulator-session': '2' } }
    expect([
      await readReplyText(script, one),
      await readReplyText(script, other),
      await readReplyText(script, one),
    ]).toEqual(['a', 'a', 'b'])
  })
})

describe('conditions', () => {
  const otherwise = 'otherwise: {text: no}'
  const results = [
    user('Go'),
    assistant(call('a', 'Bash'), call('b', 'Read')),
    user(result('a', 'FAIL x', true), result('b', 'ok')),
  ]

  it.each([
    ['{says: login}', { says: 'fix the login' }, 'yes'],
    ['{says: login}', { says: 'fix the logout' }, 'no'],
    ['{says: /LOG(in|out)/i}', { says: 'fix the logout' }, 'yes'],
    ['{says: Go}', { messages: results }, 'no'],
    ['{result: Bash}', { messages: results }, 'yes'],
    ['{result: Edit}', { messages: results }, 'no'],
    ['{result: {tool: Bash, contains: FAIL}}', { messages: results }, 'yes'],
    ['{result: {tool: Read, contains: FAIL}}', { messages: results }, 'no'],
    ['{result: {error: true}}', { messages: results }, 'yes'],
    ['{result: {tool: Read, error: true}}', { messages: results }, 'no'],
    ['{model: opus}', { model: 'claude-opus-5' }, 'yes'],
    ['{model: /^opus/}', { model: 'claude-opus-5' }, 'no'],
    ['{summary: true}', { says: 'Write an <analysis> and a <summary>.' }, 'yes'],
    ['{summary: false, says: Go}', { says: 'Go' }, 'yes'],
  ])('%s', async (when, given, text) => {
    expect(
      await readReplyText(scripted(`{turns: [{when: ${when}, text: "yes"}], ${otherwise}}`), given),
    ).toBe(text)
  })

  it.each([
    ['3', '..x...'],
    ['[1, 3]', 'x.x...'],
    ['every 2', '.x.x.x'],
    ['from 5', '....xx'],
  ])('turn: %s', async (turn, answered) => {
    const script = scripted(`{turns: [{when: {turn: ${turn}}, text: x}], otherwise: {text: .}}`)
    expect((await texts(script, answered.length)).join('')).toBe(answered)
  })

  it('come before turns in order: the first that holds, as often as allowed', async () => {
    const script = scripted(`
turns:
  - text: a
  - {when: {says: x}, times: 1, text: once}
  - {when: {says: x}, text: always}
  - text: b`)
    expect([
      await readReplyText(script, { says: 'x' }),
      await readReplyText(script, { says: 'x' }),
      await readReplyText(script),
      await readReplyText(script, { says: 'x' }),
      await readReplyText(script),
    ]).toEqual(['once', 'always', 'a', 'always', 'b'])
  })
})

describe('requests for a summary', () => {
  const ask = { says: 'Write an <analysis> and a <summary>.' }

  it('are answered with one and use up no turn', async () => {
    const script = scripted('turns: [{text: a}, {text: b}]')
    expect([
      await readReplyText(script),
      /<summary>/.test(await readReplyText(script, ask)),
      await readReplyText(script),
    ]).toEqual(['a', true, 'b'])
  })

  it('are like any other where that is wanted', async () => {
    expect(await readReplyText(scripted('{summaries: false, turns: [{text: a}]}'), ask)).toBe('a')
  })
})

describe('what a turn says', () => {
  it('thinking, text and calls, in this order', async () => {
    expect(
      await reply(`
turns:
  - calls:
      - Read: {file_path: src/a.ts}
      - {name: Bash, input: {command: ls}, id: toolu_1}
      - Stop:
    text: Looking.
    thinking: Hm.
    stop: pause_turn
    stopSequence: END
    stopDetails: {type: x}
    delays: {start: 1s, block: 20ms, piece: 5}
    fault: hang`),
    ).toEqual({
      blocks: [
        { type: 'thinking', thinking: 'Hm.' },
        { type: 'text', text: 'Looking.' },
        { type: 'tool_use', name: 'Read', input: { file_path: 'src/a.ts' } },
        { type: 'tool_use', name: 'Bash', input: { command: 'ls' }, id: 'toolu_1' },
        { type: 'tool_use', name: 'Stop', input: {} },
      ],
      stopReason: 'pause_turn',
      stopSequence: 'END',
      stopDetails: { type: 'x' },
      delays: { startMs: 1_000, blockMs: 20, pieceMs: 5 },
      fault: { type: 'hang' },
    })
  })

  it('blocks, in any order, also of kinds that nobody knows', async () => {
    expect(
      await reply(`
turns:
  - blocks:
      - text: One.
      - thinking: Two.
      - call: {Read: {file_path: a}}
      - {type: redacted_thinking, data: abc}
      - {type: new_kind, payload: {deep: [1, null, "{{turn}}"]}}`),
    ).toEqual({
      blocks: [
        { type: 'text', text: 'One.' },
        { type: 'thinking', thinking: 'Two.' },
        { type: 'tool_use', name: 'Read', input: { file_path: 'a' } },
        { type: 'redacted_thinking', data: 'abc' },
        { type: 'new_kind', payload: { deep: [1, null, '{{turn}}'] } },
      ],
    })
  })

  it('nothing at all, or nothing but a fault', async () => {
    expect(await reply('turns: [{blocks: []}]')).toEqual({ blocks: [] })
    expect(await reply('turns: [{fault: 529}]')).toEqual({
      blocks: [],
      fault: { type: 'status', status: 529 },
    })
  })

  it('what another script says, slower and with a fault', async () => {
    expect(await reply('turns: [{script: echo, delays: {start: 5}, fault: cut}]', { says: 'Hi' })).toEqual({
      blocks: [{ type: 'text', text: 'Hi' }],
      delays: { startMs: 5 },
      fault: { type: 'cut' },
    })
  })

  it('variables, also in the input of calls', async () => {
    const messages = [
      user('Go'),
      assistant(call('a', 'Read'), call('b', 'Bash')),
      user(result('a', 'A'), result('b', 'B'), 'Now?'),
    ]
    const { blocks } = await reply(
      `
variables: {who: Ada, age: 36}
turns:
  - text: '{{turn}} {{request}} {{model}} {{user}} {{result}} {{ result Read }} {{now}} {{random 10}} {{who}} {{age}} \\{{who}}'
    calls: [{Read: {lines: ['{{turn}}', 3], file_path: '{{who}}.ts'}}]`,
      { messages, model: 'm' },
    )
    expect(blocks).toEqual([
      { type: 'text', text: '3 7 m Now? B A 2027-01-15T08:00:00.000Z 5 Ada 36 {{who}}' },
      { type: 'tool_use', name: 'Read', input: { lines: ['3', 3], file_path: 'Ada.ts' } },
    ])
  })

  it('as many words as are wanted', async () => {
    const text = await readReplyText(scripted("turns: [{text: '{{words 500}}'}]"))
    expect(Math.round(Buffer.byteLength(text) / 4 / 50)).toBe(10)
  })
})
