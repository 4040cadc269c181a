import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type BodyProblem, decodeRequest } from './decode-request.ts'

function problems(body: unknown): readonly (readonly [BodyProblem['kind'], string])[] {
  const decoded = decodeRequest(typeof body === 'string' ? body : JSON.stringify(body))
  return decoded.ok ? [] : decoded.problems.map(({ kind, path }) => [kind, path])
}

const GOOD = { model: 'm', messages: [{ role: 'user', content: 'u' }] }

describe('fromBody', () => {
  it('takes betas from the header', () => {
    expect(decodeRequest(JSON.stringify(GOOD), ['b'])).toEqual({
      ok: true,
      payload: { ...GOOD, betas: ['b'] },
      raw: {},
    })
  })

  it('passes on what it does not know', () => {
    const body = {
      ...GOOD,
      next_year: { x: 1 },
      messages: [{ role: 'user', content: [{ type: 'next_year' }] }],
    }
    expect(decodeRequest(JSON.stringify(body))).toEqual({ ok: true, payload: body, raw: {} })
  })

  it('reads null as absent where a field is optional, and a system message without content', () => {
    const body = {
      ...GOOD,
      system: null,
      tools: null,
      metadata: null,
      messages: [{ role: 'system', output_config: {} }],
    }
    expect(decodeRequest(JSON.stringify(body))).toEqual({
      ok: true,
      payload: { model: 'm', metadata: null, messages: [{ role: 'system', output_config: {}, content: [] }] },
      raw: {},
    })
  })

  it('keeps the texts that parsing would change, by place', () => {
    const body =
      '{"model":"m","metadata":{"n":1.0},"tools":[{"name":"a"},{"name":"b","x":1.0}],"system":[{"type":"text","text":"s","x":1.0}],' +
      '"messages":[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"a"},{"type":"b","x":1.0}]}]}'
    const decoded = decodeRequest(body)
    expect(decoded.ok && decoded.raw).toEqual({
      parameters: new Map([['metadata', '{"n":1.0}']]),
      tools: new Map([[1, '{"name":"b","x":1.0}']]),
      system: new Map([[0, '{"type":"text","text":"s","x":1.0}']]),
      messages: [new Map(), new Map([[1, '{"type":"b","x":1.0}']])],
    })
  })

  it.each<[string, unknown, readonly (readonly [BodyProblem['kind'], string])[]]>([
    ['no JSON', '{', [['not-json', '']]],
    ['no object', [], [['wrong-type', '']]],
    [
      'nothing',
      {},
      [
        ['missing', 'model'],
        ['missing', 'messages'],
      ],
    ],
    [
      'null for what is required',
      { model: null, messages: null },
      [
        ['wrong-type', 'model'],
        ['wrong-type', 'messages'],
      ],
    ],
    ['no list of messages', { ...GOOD, messages: {} }, [['wrong-type', 'messages']]],
    ['no message', { ...GOOD, messages: ['u'] }, [['wrong-type', 'messages.0']]],
    [
      'another role',
      { ...GOOD, messages: [{ role: 'tool', content: 'u' }] },
      [['unknown-role', 'messages.0.role']],
    ],
    [
      'no role, no content',
      { ...GOOD, messages: [{}] },
      [
        ['unknown-role', 'messages.0.role'],
        ['missing', 'messages.0.content'],
      ],
    ],
    [
      'content of another type',
      { ...GOOD, messages: [{ role: 'user', content: 7 }] },
      [['wrong-type', 'messages.0.content']],
    ],
    [
      'blocks without type',
      { ...GOOD, messages: [{ role: 'user', content: [{ type: 'text' }, {}, 'x'] }] },
      [
        ['wrong-type', 'messages.0.content.1'],
        ['wrong-type', 'messages.0.content.2'],
      ],
    ],
    [
      'wrong parameters',
      { ...GOOD, max_tokens: '1', stream: 1, thinking: 'on', tool_choice: [], system: 1, tools: 'x' },
      [
        ['wrong-type', 'max_tokens'],
        ['wrong-type', 'stream'],
        ['wrong-type', 'thinking'],
        ['wrong-type', 'tool_choice'],
        ['wrong-type', 'system'],
        ['wrong-type', 'tools'],
      ],
    ],
    [
      'wrong tools and system',
      { ...GOOD, tools: [1], system: [{}] },
      [
        ['wrong-type', 'system.0'],
        ['wrong-type', 'tools.0'],
      ],
    ],
    ['betas in the body', { ...GOOD, betas: ['b'] }, [['not-allowed', 'betas']]],
  ])('names the trouble with %s', (_, body, expected) => {
    expect(problems(body)).toEqual(expected)
  })

  it('never throws', () => {
    const near = fc.record(
      { model: fc.jsonValue(), messages: fc.jsonValue(), system: fc.jsonValue(), tools: fc.jsonValue() },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          near.map((each) => JSON.stringify(each)),
        ),
        (text) => typeof decodeRequest(text).ok === 'boolean',
      ),
    )
  })
})
