import { describe, expect, it } from 'vitest'
import { createPolicy } from '../policy/create-policy.ts'
import { clearableTools } from './clearable.ts'

describe('clearable tools', () => {
  const host = { clearable: ['Ours', 'TodoWrite'], readOnly: ['mcp__docs__find', 'Other'] }
  const isClearable = clearableTools(createPolicy({}).clear, host)

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

  it('leaves MCP tools alone where policy says never', () => {
    const never = clearableTools(createPolicy({ clear: { mcp: 'never' } }).clear, host)
    expect(never('mcp__docs__find')).toBe(false)
  })
})
