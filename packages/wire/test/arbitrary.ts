/** Generators of JSON texts, blocks, replies and payloads, unusual ones included. */

import type { Payload } from '@tidemark/core/context/payload'
import type { Reply } from '@tidemark/core/engine/reply'
import type { Block } from '@tidemark/core/log/block'
import type { Json, JsonObject } from '@tidemark/core/log/json'
import { survivesJsonRoundTrip } from '@tidemark/core/log/json'
import fc from 'fast-check'
import { readAnthropicReport } from '../src/providers/message-usage.ts'

/** Keys that parsing reorders, numbers it cannot represent, and plain ones. */
const key = fc.constantFrom('a', 'b', '10', '2', '__proto__', 'é"\\', 'cache_control')
const scalar = fc.constantFrom(
  '1',
  '1.0',
  '-0',
  '1e3',
  '9007199254740993',
  'true',
  'null',
  '""',
  '"é \\u00e9 \\ud83d\\ude00 \\n"',
  '"}],{\\"["',
)
const space = fc.constantFrom('', '', ' ', '\n\t')

/** The text of a JSON value as another program might write it, with duplicate keys and white space. */
export const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string; list: string }>(
  (tie) => ({
    value: fc.oneof({ depthSize: 'small' }, scalar, tie('object'), tie('list')),
    object: fc
      .tuple(fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }), space)
      .map(
        ([members, gap]) =>
          `{${members.map(([k, v]) => `${JSON.stringify(k)}${gap}:${gap}${v}`).join(`,${gap}`)}}`,
      ),
    list: fc
      .tuple(fc.array(tie('value'), { maxLength: 3 }), space)
      .map(([items, gap]) => `[${items.join(`${gap},`)}${gap}]`),
  }),
).value

export const objectText: fc.Arbitrary<string> = jsonText.map(
  (text) => `{"10":${text},"2":[${text}],"x":${text}}`,
)

export interface WrittenBlock {
  readonly block: Block
  readonly raw?: string
}

/** A block from its text, with `raw` only if parsing and stringifying would change it. */
function toWrittenBlock(text: string): WrittenBlock {
  const block: Block = JSON.parse(text)
  return survivesJsonRoundTrip(text) ? { block } : { block, raw: text }
}

const words = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.constant('I’ll look.\nThen 👩‍👩‍👧 fix it.'),
)
const quotedText = words.map((text) => JSON.stringify(text))

export const replyBlock: fc.Arbitrary<WrittenBlock> = fc
  .oneof(
    quotedText.map((text) => `{"type":"text","text":${text}}`),
    fc
      .tuple(quotedText, fc.array(objectText, { maxLength: 2 }))
      .map(([text, cited]) => `{"type":"text","text":${text},"citations":[${cited.join(',')}]}`),
    fc
      .tuple(quotedText, jsonText)
      .map(([text, extra]) => `{"type":"text","note":${extra},"text":${text},"citations":null}`),
    fc
      .tuple(quotedText, quotedText)
      .map(([text, signature]) => `{"type":"thinking","thinking":${text},"signature":${signature}}`),
    quotedText.map((signature) => `{"type":"thinking","thinking":"","signature":${signature}}`),
    quotedText.map((data) => `{"type":"redacted_thinking","data":${data}}`),
    fc
      .tuple(fc.constantFrom('tool_use', 'server_tool_use', 'mcp_tool_use'), objectText)
      .map(([type, input]) => `{"type":"${type}","id":"toolu_1","name":"read","input":${input}}`),
    fc.constant('{"type":"tool_use","id":"toolu_2","name":"list","input":{}}'),
    objectText.map(
      (content) => `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[${content}]}`,
    ),
    quotedText.map(
      (content) => `{"type":"compaction","content":${content},"encrypted_content":null,"signature":"c2ln"}`,
    ),
    quotedText.map((content) => `{"type":"compaction","content":${content},"encrypted_content":"ZW5j"}`),
    fc.constant('{"type":"compaction","content":null,"encrypted_content":null}'),
    objectText.map((value) => `{"type":"next_year_block","value":${value}}`),
  )
  .map(toWrittenBlock)

const count = fc.nat(1_000_000)
const usage = fc.record(
  {
    input_tokens: count,
    output_tokens: count,
    cache_creation_input_tokens: fc.option(count),
    cache_read_input_tokens: fc.option(count),
    cache_creation: fc.option(
      fc.record({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
    ),
    output_tokens_details: fc.option(fc.record({ thinking_tokens: count })),
    iterations: fc.option(
      fc.array(fc.record({ type: fc.constant('message'), input_tokens: count }), { maxLength: 2 }),
    ),
    service_tier: fc.constantFrom('standard', null),
  },
  { requiredKeys: ['input_tokens', 'output_tokens'] },
)

const lateFields = fc.record(
  {
    stop_details: fc.option(fc.record({ type: fc.constant('refusal') })),
    context_management: fc.option(
      fc.constant({ applied_edits: [{ type: 'clear_tool_uses_20250919', cleared_tool_uses: 3 }] }),
    ),
    diagnostics: fc.option(
      fc.constant({ cache_miss_reason: { type: 'tools_changed', cache_missed_input_tokens: 12 } }),
    ),
    input_transformations: fc.constant([
      { type: 'thinking_dropped', path: 'messages.1.content.0', reason: 'prefix_binding_mismatch' },
    ]),
    container: fc.option(fc.constant({ id: 'container_1' })),
    next_year_field: fc.constantFrom<Json>(1, 'x', { y: [] }),
  },
  { requiredKeys: [] },
)

export const reply: fc.Arbitrary<Reply> = fc
  .record({
    blocks: fc.array(replyBlock, { maxLength: 5 }),
    usage,
    late: lateFields,
    stop: fc.constantFrom(
      'end_turn',
      'tool_use',
      'max_tokens',
      'compaction',
      'model_context_window_exceeded',
    ),
  })
  .map(({ blocks, usage: figures, late: fields, stop }) => ({
    ...readAnthropicReport({ usage: figures, stop_reason: stop }),
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant' as const,
      model: 'claude-x',
      content: blocks.map(({ block }) => block),
      stop_reason: stop,
      stop_sequence: null,
      usage: figures,
      ...fields,
    },
    rawBlocks: blocks.flatMap(({ raw }, index) => (raw === undefined ? [] : [{ index, text: raw }])),
    cutInputs: [],
    unfinished: [],
    others: [],
  }))

const marker = fc.constantFrom<Json>({ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' })
const plainJson = fc.jsonValue({ maxDepth: 2 }).map((value): Json => JSON.parse(JSON.stringify(value)))
const optionalMarker = fc.option(marker, { nil: undefined })

function withMarker(block: Block, cache_control: Json | undefined): Block {
  return cache_control === undefined ? block : { ...block, cache_control }
}

const plainBlock: fc.Arbitrary<Block> = fc.oneof(
  words.map((text) => ({ type: 'text', text })),
  plainJson.map((input) => ({ type: 'tool_use', id: 'toolu_1', name: 'read', input })),
  fc.tuple(words, optionalMarker).map(([text, nested]) => ({
    type: 'tool_result',
    tool_use_id: 'toolu_1',
    content: [withMarker({ type: 'text', text }, nested)],
  })),
  plainJson.map((value) => ({ type: 'next_year_block', value, cache_control_like: true })),
)
const block = fc.tuple(plainBlock, optionalMarker).map(([each, cache]) => withMarker(each, cache))

const tool: fc.Arbitrary<JsonObject> = fc
  .tuple(fc.string({ maxLength: 8 }), optionalMarker)
  .map(([name, cache]) => ({
    name,
    input_schema: { type: 'object' },
    ...(cache === undefined ? {} : { cache_control: cache }),
  }))

const content = fc.oneof(words, fc.array(block, { maxLength: 4 }))
const message = fc.oneof(
  fc.record({ role: fc.constantFrom('user' as const, 'assistant' as const), content }),
  fc.record({ role: fc.constant('system' as const), clear_at: fc.constant('next_user_message'), content }),
)

export const payload: fc.Arbitrary<Payload> = fc.record(
  {
    model: fc.constant('claude-x'),
    max_tokens: count,
    system: fc.oneof(words, fc.array(block, { maxLength: 3 })),
    tools: fc.array(tool, { maxLength: 3 }),
    messages: fc.array(message, { maxLength: 5 }),
    stream: fc.boolean(),
    thinking: fc.constant({ type: 'adaptive' }),
    cache_control: marker,
    context_management: plainJson,
    betas: fc.uniqueArray(fc.constantFrom('compact-2026-09-04', 'context-management-2025-06-27'), {
      minLength: 1,
    }),
  },
  { requiredKeys: ['model', 'messages'] },
)
