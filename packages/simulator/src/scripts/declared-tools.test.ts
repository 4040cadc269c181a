import { describe, expect, it } from 'vitest'
import { CLIENT_STYLES, findProblem } from '../../test/client-tools.ts'
import type { JsonObject } from '../protocol/messages-request.ts'
import { createSchemaValue, createToolInput, findToolsByRole } from './declared-tools.ts'

function namesByRole(tools: readonly JsonObject[]): unknown {
  return Object.fromEntries(Object.entries(findToolsByRole(tools)).map(([role, { name }]) => [role, name]))
}

function tool(name: string, ...fields: readonly string[]): JsonObject {
  const properties = Object.fromEntries(fields.map((field) => [field, { type: 'string' }]))
  return { name, input_schema: { type: 'object', properties, required: fields } }
}

describe('the tools of a client are found', () => {
  it.each(Object.entries(CLIENT_STYLES))('%s', (_, { tools, actions }) => {
    const expected = Object.fromEntries(Object.entries(actions).map(([name, action]) => [action, name]))
    expect(namesByRole(tools)).toEqual(expected)
  })

  it('by the shortest name if several fit', () => {
    const tools = [tool('mcp__files__read_text_file', 'path'), tool('read', 'path')]
    expect(namesByRole(tools)).toEqual({ read: 'read' })
  })

  it.each([
    ['a name without the fields', tool('Read', 'server', 'uri')],
    ['the fields without a name', tool('upload', 'path', 'content')],
    ['a search for tools', tool('ToolSearch', 'query')],
    ['a search for file names', tool('glob', 'pattern', 'path')],
    ['a subagent with a command', tool('task', 'prompt', 'command')],
    ['a tool without a schema', { type: 'web_search_20250305', name: 'web_search' }],
  ])('but not by %s', (_, declared) => {
    expect(namesByRole([declared])).toEqual({})
  })
})

describe('an input', () => {
  it('has the values under the names of the client, and only those that it declares', () => {
    const values = { path: 'a.ts', oldText: 'a', newText: 'b', edits: [{ oldText: 'a', newText: 'b' }] }
    const inputs = ['CLAUDE_CODE', 'OPENCODE', 'PI'].map((name) => {
      const { edit } = findToolsByRole(CLIENT_STYLES[name as keyof typeof CLIENT_STYLES].tools)
      return createToolInput(edit?.schema ?? {}, values)
    })
    expect(inputs).toEqual([
      { file_path: 'a.ts', old_string: 'a', new_string: 'b' },
      { filePath: 'a.ts', oldString: 'a', newString: 'b' },
      { path: 'a.ts', edits: [{ oldText: 'a', newText: 'b' }] },
    ])
  })

  it.each([
    [{ type: 'string', enum: ['low', 'high'] }, 'low'],
    [{ type: 'string', minLength: 6 }, 'none..'],
    [{ type: 'integer', exclusiveMinimum: 0 }, 1],
    [{ type: 'number', minimum: 5, maximum: 9 }, 5],
    [{ type: ['string', 'null'] }, null],
    [{ anyOf: [{ type: 'number' }, { type: 'null' }] }, null],
    [{ oneOf: [{ type: 'boolean' }, { type: 'string' }] }, false],
    [{ type: 'array', minItems: 2, items: { type: 'boolean' } }, [false, false]],
    [{ type: 'object', properties: { a: { const: 3 }, b: { type: 'string' } }, required: ['a'] }, { a: 3 }],
    [{ type: 'number', default: 5 }, 5],
  ])('has in a required field %j the value %j', (schema, value) => {
    const input = createToolInput({ type: 'object', properties: { extra: schema }, required: ['extra'] }, {})
    expect(input).toEqual({ extra: value })
    expect(createSchemaValue(schema)).toEqual(value)
  })

  it('reads enough lines and waits long enough where the client requires a number', () => {
    const number = { type: 'integer', minimum: 1 }
    const properties = { limit: number, timeout: { ...number, maximum: 600 } }
    const schema = { type: 'object', properties, required: ['limit', 'timeout'] }
    const input = createToolInput(schema, {})
    expect(input).toEqual({ limit: 2_000, timeout: 600 })
    expect(findProblem(schema, input)).toBeNull()
  })

  it('has a value that the client allows', () => {
    const status = { type: 'string', enum: ['open', 'done'] }
    expect(createToolInput({ properties: { status } }, { status: 'in_progress' })).toEqual({ status: 'open' })
    expect(createToolInput({ properties: { status } }, { status: 'done' })).toEqual({ status: 'done' })
  })
})
