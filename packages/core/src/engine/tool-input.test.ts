import { describe, expect, it } from 'vitest'
import { describeMisfit, fitReplyEventToolInputs, fitToolInput } from './tool-input.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    limit: { type: 'integer' },
    ratio: { type: ['number', 'null'] },
    all: { type: 'boolean' },
    mode: { enum: ['head', 'tail'] },
    lines: { type: 'array', items: { type: 'integer' } },
    range: { type: 'object', properties: { from: { type: 'integer' } }, additionalProperties: false },
    id: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
    size: { oneOf: [{ type: 'integer' }, { type: 'null' }] },
    other: { $ref: '#/$defs/other' },
  },
  required: ['path'],
  additionalProperties: false,
}
const TOOLS = [
  { name: 'Read', input_schema: SCHEMA },
  { name: 'Free', input_schema: { type: 'object' } },
]
const fit = (input: unknown) => fitToolInput(TOOLS, 'Read', { path: '/a', ...(input as object) })

describe('the input of a tool call', () => {
  it('is an object if the model wrote the JSON of one as a text', () => {
    expect(fitToolInput(TOOLS, 'Read', '{"path":"/a","limit":"5"}')).toEqual({
      input: { path: '/a', limit: 5 },
      problems: [],
    })
    expect(fitToolInput(TOOLS, 'Read', '{"path"').problems).toEqual([
      'the input: expected object, got string',
    ])
  })

  it.each([
    ['a number as text', { limit: '5' }, { limit: 5 }],
    ['a number with a fraction as text', { ratio: ' -0.5 ' }, { ratio: -0.5 }],
    ['true as text', { all: 'True' }, { all: true }],
    ['numbers as text in a list', { lines: ['1', 2] }, { lines: [1, 2] }],
    ['a field that the schema forbids', { limit: 1, note: 'x' }, { limit: 1 }],
    ['a forbidden field within', { range: { from: '1', to: 2 } }, { range: { from: 1 } }],
    ['a number as text where one of the forms is a number', { size: '7' }, { size: 7 }],
  ])('is mended: %s', (_, given, mended) => {
    expect(fit(given)).toEqual({ input: { path: '/a', ...mended }, problems: [] })
  })

  it.each([
    ['text that may be text', { id: '5' }],
    ['null where it is allowed', { ratio: null }],
    ['what a reference describes', { other: { a: '1' } }],
    ['one of the choices', { mode: 'tail' }],
    ['a list as it should be', { lines: [1, 2], range: { from: 1 } }],
  ])('stays the same object: %s', (_, given) => {
    const input = { path: '/a', ...given }
    expect(fitToolInput(TOOLS, 'Read', input).input).toBe(input)
    expect(fitToolInput(TOOLS, 'Read', input).problems).toEqual([])
  })

  it.each([
    ['no number', { limit: 'five' }, 'limit: expected integer, got string'],
    ['a fraction', { limit: '5.5' }, 'limit: expected integer, got string'],
    [
      'more digits than a number holds',
      { limit: '12345678901234567890' },
      'limit: expected integer, got string',
    ],
    ['another choice', { mode: 'middle' }, 'mode: expected one of "head", "tail"'],
    ['one item of a list', { lines: [1, 'x'] }, 'lines[1]: expected integer, got string'],
    ['an inner field', { range: { from: null } }, 'range.from: expected integer, got null'],
    ['none of the forms', { id: true }, 'id: fits none of the 2 forms allowed'],
    ['an object for text', { path: {} }, 'path: expected string, got object'],
  ])('does not fit: %s', (_, given, problem) => {
    expect(fit(given).problems).toEqual([problem])
  })

  it('does not fit where a field is missing, or where it is no object', () => {
    expect(fitToolInput(TOOLS, 'Read', {}).problems).toEqual(['path: is missing'])
    expect(fitToolInput(TOOLS, 'Read', 'x').problems).toEqual(['the input: expected object, got string'])
  })

  it('is left alone where the tool is unknown or takes anything', () => {
    const input = { limit: '5', __proto__x: 1 }
    for (const name of ['Free', 'Unknown'])
      expect(fitToolInput(TOOLS, name, input)).toEqual({ input, problems: [] })
  })

  it('is told about in a few words', () => {
    expect(
      describeMisfit(
        'Read',
        Array.from({ length: 10 }, (_, at) => `f${at}: is missing`),
      ),
    ).toMatch(
      /^The input does not fit the schema of Read, so the tool was not run: f0.*and 2 more\. Call again/,
    )
  })
})

describe('a reply', () => {
  const call = { type: 'tool_use', id: 't', name: 'Read', input: { path: '/a', limit: '5' } }

  it('is logged with inputs that fit', () => {
    const event = fitReplyEventToolInputs({ type: 'block-ended', index: 0, block: call }, TOOLS)
    expect(event).toMatchObject({ block: { input: { path: '/a', limit: 5 } } })
  })

  it.each([{ raw: '{}' }, { cutInput: '{"pa' }])('keeps an input that has %o as it is', (more) => {
    const event = { type: 'block-ended' as const, index: 0, block: call, ...more }
    expect(fitReplyEventToolInputs(event, TOOLS)).toBe(event)
  })
})
