import { describe, expect, it } from 'vitest'
import { Situation } from '../../test/clear/situation.ts'
import type { JsonObject } from '../log/json.ts'
import { createPolicy } from '../policy/create-policy.ts'
import { createClearableCheck } from './tool-result-index.ts'

type Told = readonly [tool: string, input: JsonObject, content?: string, isError?: boolean]

const READ: Told = ['Read', { file_path: '/a' }]
const PART: Told = ['Read', { file_path: '/a', offset: 5, limit: 5 }]
const FAILED: Told = ['Read', { file_path: '/a' }, 'no such file', true]
const UNCHANGED: Told = ['Read', { file_path: '/a' }, 'File unchanged since last read. Refer to it.']
const OTHER: Told = ['Read', { file_path: '/b' }]
const WRITE: Told = ['Write', { file_path: '/a', content: 'x' }]
const EDIT: Told = ['Edit', { file_path: '/a', old_string: 'x', new_string: 'y' }]
const EDIT_FAILED: Told = ['Edit', { file_path: '/a', old_string: 'q', new_string: 'y' }, 'not found', true]
const TEST: Told = ['Bash', { command: 'npm test' }]
const TEST_FAILED: Told = ['Bash', { command: 'npm test' }, 'failed', true]
const LIST: Told = ['Bash', { command: 'ls' }]
const GREP: Told = ['Grep', { pattern: 'x', path: '/a' }]

describe('superseded', () => {
  it.each([
    ['a file read again in full', READ, READ, 'read-again'],
    ['a part, by the whole', PART, READ, 'read-again'],
    ['a part, by the same part', PART, PART, 'read-again'],
    ['the whole, by a part', READ, PART, null],
    ['a file, by another', READ, OTHER, null],
    ['a file overwritten', READ, WRITE, 'overwritten'],
    ['a part of a file overwritten', PART, WRITE, 'overwritten'],
    ['a file edited', READ, EDIT, null],
    ['a file that could not be read again', READ, FAILED, null],
    ['a file said to be unchanged', READ, UNCHANGED, null],
    ['a search in a file, by a read of it', GREP, READ, null],
    ['a search made twice', GREP, GREP, 'repeated'],
    ['a command repeated', TEST, TEST, 'repeated'],
    ['a command, by another', TEST, LIST, null],
    ['a command repeated in vain', TEST, TEST_FAILED, null],
    ['a failed command made good', TEST_FAILED, TEST, 'made-good'],
    ['a failed read made good by a part', FAILED, PART, 'made-good'],
    ['a failed edit made good', EDIT_FAILED, EDIT, 'made-good'],
    ['a failed edit, by a failed one', EDIT_FAILED, EDIT_FAILED, null],
    ['a write overwritten', WRITE, WRITE, 'overwritten'],
    ['an edit, by another edit', EDIT, EDIT, null],
    ['an edit overwritten', EDIT, WRITE, 'overwritten'],
  ] as const)('%s', (_, older, newer, why) => {
    const situation = new Situation()
    const tell = ([tool, input, content = 'text', isError = false]: Told): string =>
      situation.call(tool, input, content, { isError })
    const [one, other] = [tell(older), tell(newer)]
    const { superseded } = situation.register.supersession
    expect(superseded.get(one)).toBe(why ?? undefined)
    expect(superseded.get(other)).toBeUndefined()
  })

  it('each by a later one, and the newest by none', () => {
    const situation = new Situation()
    const reads = [situation.read('/a', 1), situation.read('/a', 1), situation.read('/a', 1)]
    const { superseded } = situation.register.supersession
    expect(reads.map((id) => superseded.get(id))).toEqual(['read-again', 'read-again', undefined])
  })
})

describe('clearable tools', () => {
  const host = { clearable: ['Ours', 'TodoWrite'], readOnly: ['mcp__docs__find', 'Other'] }
  const isClearable = createClearableCheck(createPolicy({}).clear, host)

  it.each<readonly [string, boolean]>([
    ...['Read', 'Bash', 'Grep', 'Glob', 'WebFetch', 'WebSearch', 'Edit', 'Write'].map(
      (tool) => [tool, true] as const,
    ),
    ...['AskUserQuestion', 'NotebookEdit', 'Task', 'TodoWrite', 'todo_write', 'update_plan', 'Agent'].map(
      (tool) => [tool, false] as const,
    ),
    ['Ours', true],
    ['Unheard', false],
    ['mcp__docs__find', true],
    ['mcp__docs__write', false],
    ['Other', false],
  ])('%s: %s', (tool, expected) => {
    expect([isClearable(tool), isClearable(tool)]).toEqual([expected, expected])
  })

  it('includes tools of any name where the host clears unlisted ones, except protected and MCP tools', () => {
    const library = { clearsUnlisted: true, protected: ['Secrets'], readOnly: ['mcp__docs__find'] }
    const check = createClearableCheck(createPolicy({}).clear, library)
    const tools = ['fetch_rows', 'Read', 'Secrets', 'mcp__docs__find', 'mcp__docs__write', 'AskUserQuestion']
    expect(tools.filter(check)).toEqual(['fetch_rows', 'Read', 'mcp__docs__find'])
  })

  it('of MCP tools that become known later are cleared from then on', () => {
    const known = new Set<string>()
    const check = createClearableCheck(createPolicy({}).clear, { readOnly: (tool) => known.has(tool) })
    expect(check('mcp__docs__find')).toBe(false)
    known.add('mcp__docs__find')
    expect(check('mcp__docs__find')).toBe(true)
    known.clear()
    expect([check('mcp__docs__find'), check('mcp__docs__write')]).toEqual([true, false])
  })

  it('leaves MCP tools alone where policy says never', () => {
    const never = createClearableCheck(createPolicy({ clear: { mcp: 'never' } }).clear, host)
    expect(never('mcp__docs__find')).toBe(false)
  })
})
