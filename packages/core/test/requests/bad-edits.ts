import { type BadRequest, profileWith, request, user } from './make.ts'

const plain = (more: Readonly<Record<string, unknown>>): unknown => request([user('a')], more)
const edits = (...list: readonly unknown[]): unknown =>
  plain({ thinking: { type: 'adaptive' }, context_management: { edits: list } })
const first = 'context_management.edits.0'

export const badEdits: readonly BadRequest[] = [
  {
    why: 'edits where there are none',
    payload: plain({ context_management: { edits: [] } }),
    profile: profileWith({ contextEdits: { clearThinking: null, clearToolUses: null, compact: null } }),
    findings: [['edits-refused', 'context_management']],
  },
  {
    why: 'edits in a string',
    payload: plain({ context_management: 'clear' }),
    findings: [['edit-shape', 'context_management']],
  },
  {
    why: 'edits in an object',
    payload: plain({ context_management: { edits: {} } }),
    findings: [['edit-shape', 'context_management']],
  },
  { why: 'an edit without a type', payload: edits({ keep: 'all' }), findings: [['edit-shape', first]] },
  {
    why: 'an edit nobody knows',
    payload: edits({ type: 'clear_all' }),
    findings: [['edit-unsupported', `${first}.type`]],
  },
  {
    why: 'parameters of the wrong kind',
    payload: edits({
      type: 'clear_tool_uses',
      trigger: 5,
      keep: { type: 'tool_uses', value: -1 },
      clear_at_least: { type: 'tool_uses', value: 1 },
      exclude_tools: [1],
      clear_tool_inputs: 'all',
      more: true,
    }),
    findings: ['trigger', 'keep', 'clear_at_least', 'exclude_tools', 'clear_tool_inputs', 'more'].map(
      (name) => ['edit-parameter', `${first}.${name}`] as const,
    ),
  },
  {
    why: 'no turn of thinking kept',
    payload: edits({ type: 'clear_thinking', keep: { type: 'thinking_turns', value: 0 } }),
    findings: [['edit-parameter', `${first}.keep`]],
  },
  {
    why: 'a summary too early',
    payload: edits({
      type: 'compact',
      trigger: { type: 'input_tokens', value: 49_999 },
      pause_after_compaction: 1,
      instructions: 2,
    }),
    findings: ['trigger', 'pause_after_compaction', 'instructions'].map(
      (name) => ['edit-parameter', `${first}.${name}`] as const,
    ),
  },
  {
    why: 'thinking cleared second',
    payload: edits({ type: 'clear_tool_uses' }, { type: 'clear_thinking' }),
    findings: [['edit-order', 'context_management.edits.1']],
  },
  {
    why: 'thinking cleared where there is none',
    payload: plain({ context_management: { edits: [{ type: 'clear_thinking' }] } }),
    findings: [['edit-without-thinking', first]],
  },
  {
    why: 'thinking cleared where it is off',
    payload: plain({
      thinking: { type: 'disabled' },
      context_management: { edits: [{ type: 'clear_thinking' }] },
    }),
    findings: [['edit-without-thinking', first]],
  },
]
