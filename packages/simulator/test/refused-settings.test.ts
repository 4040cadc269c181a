/** Settings, sizes and markers that are rejected, with the text of each error. */
import { describe, expect, it } from 'vitest'
import { assistant, call, MARK, MODEL, postMessage, result, simulate, TOOL, text, user } from './ask.ts'
import { type RejectionRow, testRejections } from './refusals.ts'

const CONTEXT = { betas: ['context-management-2025-06-27'] }

const ADAPTIVE = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
const BUDGET = { thinking: { type: 'enabled', budget_tokens: 1_024 }, max_tokens: 2_000 }

const THINKING: readonly RejectionRow[] = [
  {
    name: 'a budget on a model without',
    body: { ...BUDGET, messages: [user('x')] },
    says: `"thinking.type.enabled" is not supported for this model. ${ADAPTIVE}`,
  },
  {
    name: 'none on a model that always thinks',
    body: { model: 'claude-opus-5-5', thinking: { type: 'disabled' }, messages: [user('x')] },
    says: `"thinking.type.disabled" is not supported for this model. ${ADAPTIVE}`,
  },
  {
    name: 'adaptive on an older model',
    body: { model: 'claude-haiku-4-5', thinking: { type: 'adaptive' }, messages: [user('x')] },
    says: 'adaptive thinking is not supported on this model',
  },
  {
    name: 'none, at high effort',
    body: { thinking: { type: 'disabled' }, output_config: { effort: 'high' }, messages: [user('x')] },
    says: null,
  },
  {
    name: 'none, at more than high effort',
    body: { thinking: { type: 'disabled' }, output_config: { effort: 'max' }, messages: [user('x')] },
    says: '"thinking.type.disabled" is only supported at effort "high" or below for this model.',
  },
  {
    name: 'a budget too small',
    body: {
      model: 'claude-opus-4-6',
      thinking: { type: 'enabled', budget_tokens: 1_023 },
      messages: [user('x')],
    },
    says: 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024',
  },
  {
    name: 'a budget as large as the answer',
    body: { model: 'claude-opus-4-6', ...BUDGET, max_tokens: 1_024, messages: [user('x')] },
    says: /^`max_tokens` must be greater than `thinking.budget_tokens`/,
  },
  {
    name: 'a turn of calls that does not begin with its thinking',
    body: {
      model: 'claude-opus-4-6',
      ...BUDGET,
      tools: [TOOL],
      messages: [user('x'), assistant(call('a')), user(result('a'))],
    },
    says: /^messages\.1\.content\.0\.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`\. When `thinking` is enabled, a final `assistant` message must start with a thinking block/,
  },
  {
    name: 'a forged signature',
    body: {
      messages: [
        user('x'),
        assistant({ type: 'thinking', thinking: 'x', signature: 'forged' }, 'y'),
        user('z'),
      ],
    },
    says: 'messages.1.content.0: Invalid `signature` in `thinking` block',
  },
  {
    name: 'a forced call while there is a budget',
    body: {
      model: 'claude-opus-4-6',
      ...BUDGET,
      tools: [TOOL],
      tool_choice: { type: 'any' },
      messages: [user('x')],
    },
    says: 'Thinking may not be enabled when tool_choice forces tool use.',
  },
  {
    name: 'a forced call on a model that takes none',
    body: { model: 'claude-opus-5-5', tools: [TOOL], tool_choice: { type: 'any' }, messages: [user('x')] },
    says: 'tool_choice: type `any` is not supported for this model.',
  },
  {
    name: 'a choice among no tools',
    body: { tool_choice: { type: 'auto' }, messages: [user('x')] },
    says: 'tool_choice: tool_choice may only be specified while providing `tools`.',
  },
  {
    name: 'a choice of a tool there is not',
    body: { tools: [TOOL], tool_choice: { type: 'tool', name: 'other' }, messages: [user('x')] },
    says: "Tool 'other' not found in provided tools",
  },
]

const SIZES: readonly RejectionRow[] = [
  {
    name: 'an answer too long',
    body: { max_tokens: 128_001, messages: [user('x')] },
    says: 'max_tokens: 128001 > 128000, which is the maximum allowed number of output tokens for claude-opus-5',
  },
  {
    name: 'five markers',
    body: { messages: [user(...[1, 2, 3, 4, 5].map((at) => text(`x${at}`, MARK)))] },
    says: 'A maximum of 4 blocks with cache_control may be provided. Found 5.',
  },
  {
    name: 'markers inside a result count',
    body: {
      tools: [TOOL],
      messages: [
        user('x'),
        assistant(call('a')),
        user({
          type: 'tool_result',
          tool_use_id: 'a',
          content: [1, 2, 3, 4, 5].map((at) => text(`x${at}`, MARK)),
        }),
      ],
    },
    says: 'A maximum of 4 blocks with cache_control may be provided. Found 5.',
  },
  {
    name: 'an hour behind five minutes',
    body: {
      system: [text('x', MARK)],
      messages: [user('y', text('z', { cache_control: { type: 'ephemeral', ttl: '1h' } }))],
    },
    says: "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
  },
  {
    name: 'a prompt too long',
    body: { messages: [user('x'.repeat(4_000))] },
    options: { window: 900 },
    says: 'prompt is too long: 1004 tokens > 900 maximum',
  },
  {
    name: 'a prompt and an answer too long, together',
    body: { max_tokens: 500, messages: [user('x'.repeat(2_000))] },
    options: { window: 900 },
    says: null,
  },
  {
    name: 'the same on a model from before 4.5',
    body: { model: 'claude-opus-4-1', max_tokens: 500, messages: [user('x'.repeat(2_000))] },
    options: { window: 900 },
    says: 'input length and `max_tokens` exceed context limit: 504 + 500 > 900, decrease input length or `max_tokens` and try again',
  },
  {
    name: 'clearing thinking second',
    body: {
      messages: [user('x')],
      context_management: {
        edits: [{ type: 'clear_tool_uses_20250919' }, { type: 'clear_thinking_20251015' }],
      },
    },
    asked: CONTEXT,
    says: 'context_management.edits: `clear_thinking_20251015` must be the first edit',
  },
  {
    name: 'a compaction that would come too early',
    body: {
      messages: [user('x')],
      context_management: {
        edits: [{ type: 'compact_20260112', trigger: { type: 'input_tokens', value: 1_000 } }],
      },
    },
    asked: { betas: ['compact-2026-01-12'] },
    says: 'context_management.edits.0.compact_20260112: trigger.value must be at least 50000',
  },
]

describe('thinking and tool choice', () => {
  testRejections(THINKING)
})

describe('sizes, markers and edits', () => {
  testRejections(SIZES)
})

describe('images', () => {
  /** The header of a PNG of that size. */
  function png(width: number): object {
    const head = Buffer.alloc(24)
    head.write('\x89PNG\r\n\x1a\n', 'latin1')
    head.writeUInt32BE(width, 16)
    head.writeUInt32BE(10, 20)
    return {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: head.toString('base64') },
    }
  }
  const many = (count: number, width: number): object => ({
    messages: [user(...Array.from({ length: count }, () => png(width)))],
  })
  const LIMIT = 'At least one of the image dimensions exceed max allowed size'
  it.each([
    { name: '20 wide ones', body: many(20, 2_001), says: null },
    { name: '21 narrow ones', body: many(21, 2_000), says: null },
    {
      name: '21 wide ones',
      body: many(21, 2_001),
      says: `messages.0.content.0.image.source.base64.data: ${LIMIT} for many-image requests: 2000 pixels`,
    },
    {
      name: 'one that is huge',
      body: many(1, 8_001),
      says: `messages.0.content.0.image.source.base64.data: ${LIMIT}: 8000 pixels`,
    },
    {
      name: '101 on a model of 200k',
      body: { model: 'claude-haiku-4-5', ...many(101, 10) },
      says: 'messages: too many images and documents: 101 > 100',
    },
    { name: '101 on a larger model', body: many(101, 10), says: null },
  ])('$name', async ({ body, says }) => {
    const told = await postMessage(simulate(), { model: MODEL, ...body })
    expect(told.body.error?.message ?? null).toBe(says)
  })
})

it('takes the safeguards of Claude Code with their beta, and refuses them without', async () => {
  const body = { safeguards: { dangerous_tool_use: 'block' }, messages: [user('x')] }
  const allowed = await postMessage(simulate(), body, { betas: ['dangerous-tool-use-2026-09-03'] })
  expect(allowed.status).toBe(200)
  expect((await postMessage(simulate(), body)).status).toBe(400)
})
