import { describe, expect, it } from 'vitest'
import { assistant, call, postMessage, simulate, user } from './ask.ts'
import {
  BETA,
  COMPACT,
  createCompactionBlock,
  HISTORY,
  REQUEST,
  summaryScript,
  WITH_COMPACTION_BETA,
} from './summaries.ts'

describe('what is rejected', () => {
  const rows: readonly {
    readonly name: string
    readonly body: (block: object) => object
    readonly code?: string
  }[] = [
    {
      name: 'two blocks',
      body: (block) => ({ messages: [assistant(block), assistant(block), user('x')] }),
      code: 'compaction_block_ambiguous',
    },
    {
      name: 'a block that is not first',
      body: (block) => ({ messages: [user('x'), assistant(block), user('y')] }),
      code: 'compaction_block_misplaced',
    },
    {
      name: 'a block in a system message',
      body: (block) => ({ messages: [user('x'), { role: 'system', content: [block] }] }),
      code: 'compaction_block_misplaced',
    },
    {
      name: 'a summary that was edited',
      body: (block) => ({
        messages: [assistant({ ...block, content: 'It was about something else.' }), user('x')],
      }),
      code: 'compaction_content_mismatch',
    },
    {
      name: 'a signature that was edited',
      body: (block) => ({ messages: [assistant({ ...block, signature: 'AAAA' }), user('x')] }),
      code: 'compaction_signature_invalid',
    },
    {
      name: 'a signature that was lost',
      body: (block) => ({ messages: [assistant({ ...block, signature: null }), user('x')] }),
      code: 'compaction_signature_invalid',
    },
    {
      name: 'tool changes nobody made',
      body: (block) => ({
        messages: [
          assistant({
            ...block,
            tool_changes: [{ type: 'tool_removal', tool: { type: 'tool_reference', name: 'look' } }],
          }),
          user('x'),
        ],
      }),
      code: 'compaction_tool_changes_mismatch',
    },
    {
      name: 'a call without its result',
      body: () => ({ ...COMPACT, messages: [user('x'), assistant(call('a'))] }),
      code: 'compaction_incomplete_turn',
    },
    {
      name: 'nothing to summarise',
      body: () => ({ ...COMPACT, messages: [] }),
      code: 'compaction_nothing_to_summarize',
    },
    {
      name: 'fields the block did not have',
      body: (block) => ({ messages: [assistant({ ...block, citations: null }), user('x')] }),
    },
    { name: 'stop sequences', body: () => ({ ...COMPACT, stop_sequences: ['x'], messages: HISTORY }) },
    {
      name: 'a format',
      body: () => ({
        ...COMPACT,
        output_config: { format: { type: 'json_schema', schema: {} } },
        messages: HISTORY,
      }),
    },
    {
      name: 'a forced call',
      body: () => ({ ...COMPACT, model: 'claude-opus-5', tool_choice: { type: 'any' }, messages: HISTORY }),
    },
    {
      name: 'instructions too long',
      body: () => ({
        compaction: { type: 'summarize', instructions: 'x'.repeat(16_385) },
        messages: HISTORY,
      }),
    },
    {
      name: 'a model that cannot',
      body: () => ({ ...COMPACT, model: 'claude-haiku-4-5', messages: HISTORY }),
    },
  ]
  it.each(rows)('$name', async ({ body, code }) => {
    const simulator = simulate({ script: summaryScript })
    const block = await createCompactionBlock(simulator, HISTORY)
    const told = await postMessage(
      simulator,
      { ...REQUEST, ...body(block) },
      { betas: [BETA, 'inline-tools-2026-09-15'] },
    )
    expect(told.status).toBe(400)
    expect(told.body.error.details?.error_code).toBe(code)
  })

  it('context_management beside it', async () => {
    const body = { ...REQUEST, ...COMPACT, context_management: { edits: [] }, messages: HISTORY }
    const told = await postMessage(simulate(), body, { betas: [BETA, 'context-management-2025-06-27'] })
    expect(told.body.error.message).toBe('compaction: cannot be combined with `context_management`')
  })

  it('unknown fields, by name', async () => {
    const simulator = simulate({ script: summaryScript })
    const block = await createCompactionBlock(simulator, HISTORY)
    const told = await postMessage(
      simulator,
      { ...REQUEST, messages: [assistant({ ...block, citations: null }), user('x')] },
      WITH_COMPACTION_BETA,
    )
    expect(told.body.error.message).toBe(
      'messages.0.content.0.compaction.citations: Extra inputs are not permitted',
    )
  })

  it('can be overloaded, with an error code', async () => {
    const simulator = simulate({
      script: () => ({
        blocks: [],
        fault: { type: 'status', status: 529, details: { error_code: 'compaction_unavailable' } },
      }),
    })
    const told = await postMessage(
      simulator,
      { ...REQUEST, ...COMPACT, messages: HISTORY },
      WITH_COMPACTION_BETA,
    )
    expect(told.status).toBe(529)
    expect(told.body.error).toMatchObject({
      type: 'overloaded_error',
      details: { error_code: 'compaction_unavailable' },
    })
  })
})
