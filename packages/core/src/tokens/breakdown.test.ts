import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { Block } from '../log/block.ts'
import {
  type BreakdownOptions,
  createBreakdownBuilder,
  findDuplicateReads,
  toBreakdownMetrics,
} from './breakdown.ts'

/** Ten tokens a block, so that sums can be read off. */
const rules: BreakdownOptions = { estimate: () => 10, readTools: ['Read'] }
const read = (id: string, path: string): Block => ({
  type: 'tool_use',
  id,
  name: 'Read',
  input: { file_path: path },
})

function told(tell: (builder: SessionBuilder) => void) {
  const builder = new SessionBuilder()
  tell(builder)
  const account = createBreakdownBuilder(rules)
  for (const entry of builder.view.entries) account.add(entry.record)
  return account.breakdown
}

describe('accounting', () => {
  const standing = told((builder) => {
    builder.user('go')
    builder.user('<local-command-stdout>x</local-command-stdout>')
    builder.user('caveat', { isMeta: true })
    builder.user('Summary: …', { isCompactSummary: true })
    builder.user([{ type: 'image' }, { type: 'hologram' }])
    builder.assistant('m1', [
      { type: 'thinking', thinking: '' },
      { type: 'text', text: 'hm' },
      read('c1', '/a'),
      read('c2', '/b'),
    ])
    builder.result('c1', 'x')
    builder.result('c2', 'x')
    builder.assistant('m2', [read('c3', '/a'), { type: 'tool_use', id: 'c4', name: 'Bash', input: {} }])
    builder.result('c3', 'x')
    builder.result('c4', 'x')
    builder.result('nobody', 'x')
    builder.attachment({ type: 'todo', content: 'x' })
    builder.attachment({ content: 'x' })
    builder.attachment({ type: 'todo', content: 'x' }, { isScreenOnly: true })
    builder.notice('turn_duration')
    const error = { id: 'e', role: 'assistant' as const, model: '<synthetic>', content: 'API error' }
    builder.assistant('e', '', { isApiErrorMessage: true, message: error })
  })

  it('puts every block into one class, and the classes add up', () => {
    expect(standing).toEqual({
      human: 10,
      assistantText: 10,
      thinking: 10,
      summaries: 10,
      localCommandOutput: 10,
      other: 20,
      media: { count: 1, tokens: 10 },
      toolRequests: new Map([
        ['Read', { count: 3, tokens: 30 }],
        ['Bash', { count: 1, tokens: 10 }],
      ]),
      toolResults: new Map([
        ['Read', { count: 3, tokens: 30 }],
        ['Bash', { count: 1, tokens: 10 }],
        ['unknown', { count: 1, tokens: 10 }],
      ]),
      attachments: new Map([
        ['todo', { count: 1, tokens: 10 }],
        ['unknown', { count: 1, tokens: 10 }],
      ]),
      reads: new Map([
        ['/a', { count: 2, tokens: 20 }],
        ['/b', { count: 1, tokens: 10 }],
      ]),
      total: 190,
    })
  })

  it('says what reading a file again has wasted', () => {
    expect(findDuplicateReads(standing)).toEqual([{ path: '/a', count: 2, tokens: 10 }])
    const thrice = { ...standing, reads: new Map([['/a', { count: 3, tokens: 100 }]]) }
    expect(findDuplicateReads(thrice)).toEqual([{ path: '/a', count: 3, tokens: 66 }])
  })

  it('has the metrics of the contract', () => {
    expect(toBreakdownMetrics(standing)).toEqual({
      total_tokens: 190,
      human_message_tokens: 10,
      assistant_message_tokens: 10,
      local_command_output_tokens: 10,
      thinking_tokens: 10,
      summary_tokens: 10,
      attachment_tokens: 20,
      media_tokens: 10,
      other_tokens: 20,
      attachment_todo_count: 1,
      attachment_unknown_count: 1,
      tool_request_Read_tokens: 30,
      tool_request_Bash_tokens: 10,
      tool_result_Read_tokens: 30,
      tool_result_Bash_tokens: 10,
      tool_result_unknown_tokens: 10,
      duplicate_read_tokens: 10,
      duplicate_read_file_count: 1,
      human_message_percent: 5,
      assistant_message_percent: 5,
      local_command_output_percent: 5,
      thinking_percent: 5,
      summary_percent: 5,
      attachment_percent: 11,
      media_percent: 5,
      duplicate_read_percent: 5,
      tool_request_percent: 21,
      tool_result_percent: 27,
      other_percent: 11,
    })
    expect(toBreakdownMetrics(createBreakdownBuilder(rules).breakdown)).not.toHaveProperty(
      'human_message_percent',
    )
  })
})
