import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { buildContextView } from '../../src/context/context-view.ts'
import { flattenContext, toApiMessages } from '../../src/context/flatten-context.ts'
import { decodeRecord } from '../../src/log/decode-record.ts'
import type { SessionRecord } from '../../src/log/record.ts'
import { appendRecord, emptySessionLog } from '../../src/log/session-log.ts'

const odd = fc.oneof(fc.jsonValue(), fc.constantFrom('u1', 'u2', 'u3', null, true, [], {}))
const uuid = fc.constantFrom('u1', 'u2', 'u3', 'u4')
const block = fc.oneof(
  fc.record(
    {
      type: fc.constantFrom(
        'text',
        'tool_use',
        'tool_result',
        'thinking',
        'server_tool_use',
        'x_tool_result',
        'compaction',
        'image',
      ),
    },
    { requiredKeys: ['type'] },
  ),
  fc.record({ type: fc.constantFrom('tool_use', 'server_tool_use'), id: uuid, name: odd, input: odd }),
  fc.record({
    type: fc.constantFrom('tool_result', 'web_tool_result'),
    tool_use_id: uuid,
    content: fc.oneof(odd, fc.array(odd)),
  }),
  fc.record({ type: fc.constant('text'), text: odd }),
)
const content = fc.oneof(fc.string(), fc.array(block))
const flags = {
  isMeta: odd,
  isSidechain: fc.boolean(),
  isCompactSummary: fc.boolean(),
  rawBlocks: odd,
  batch: odd,
  seq: odd,
}
const links = { uuid, parentUuid: fc.option(uuid, { nil: null }), timestamp: odd, sessionId: odd }
const said = fc.record(
  {
    type: fc.constant('user'),
    ...links,
    ...flags,
    message: fc.record({ role: fc.constantFrom('user', 'system'), content, output_config: odd }),
  },
  { requiredKeys: ['type', 'uuid', 'message'] },
)
const answered = fc.record(
  {
    type: fc.constant('assistant'),
    ...links,
    ...flags,
    message: fc.record({ id: uuid, role: odd, model: fc.constant('m'), content, usage: odd }),
  },
  { requiredKeys: ['type', 'uuid', 'message'] },
)
const kept = fc.record({ anchorUuid: uuid, uuids: fc.array(uuid) })
const act = fc.record(
  {
    type: fc.constant('system'),
    ...links,
    subtype: fc.constantFrom(
      'compact_boundary',
      'microcompact_boundary',
      'compact_undone',
      'clear_undone',
      'pin',
      'epoch',
      'delta',
      'x',
    ),
    of: uuid,
    pin: odd,
    epoch: odd,
    compactMetadata: fc.oneof(
      odd,
      fc.record(
        { preservedMessages: kept, unansweredMessages: kept, preservedSegment: odd },
        { requiredKeys: [] },
      ),
    ),
    microcompactMetadata: fc.oneof(
      odd,
      fc.record({
        compactedToolIds: fc.oneof(odd, fc.array(uuid)),
        clearedAttachmentUUIDs: odd,
        clearedThinking: odd,
        clearedInputs: fc.oneof(odd, fc.array(odd)),
        notes: odd,
        way: odd,
      }),
    ),
  },
  { requiredKeys: ['type', 'uuid', 'subtype'] },
)
const attached = fc.record(
  {
    type: fc.constant('attachment'),
    ...links,
    attachment: fc.dictionary(fc.constantFrom('type', 'content', 'path', 'constructor'), odd),
  },
  { requiredKeys: ['type', 'uuid', 'attachment'] },
)
const anything = fc.oneof(said, answered, act, attached, fc.jsonValue())

describe('total: any JSON that is taken for a record', () => {
  it('is folded, viewed and flattened, and never throws', () => {
    let taken = 0
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 14 }), (values) => {
        const records = values
          .map((value) => decodeRecord(value))
          .flatMap((item) => (item.ok ? [item.record] : []))
        const session = records.reduce(
          (folded, record: SessionRecord) => appendRecord(folded, record),
          emptySessionLog(),
        )
        taken += records.length
        expect(JSON.stringify(toApiMessages(flattenContext(buildContextView(session))))).toBeTypeOf('string')
      }),
      { numRuns: 400 },
    )
    expect(taken).toBeGreaterThan(250)
  })

  const call = {
    type: 'assistant',
    uuid: 'a',
    parentUuid: 'p',
    message: { id: 'm', model: 'm', content: [{ type: 'tool_use', id: 'c', name: 'Read', input: {} }] },
  }
  const clearing = (metadata: object) => ({
    type: 'system',
    uuid: 's',
    parentUuid: 'a',
    subtype: 'microcompact_boundary',
    microcompactMetadata: metadata,
  })

  it.each([
    [
      'a notice with a pin that is none',
      { type: 'system', uuid: 's', parentUuid: 'a', subtype: 'x', pin: null },
    ],
    ['raw texts that are no list', { ...call, uuid: 's', rawBlocks: {} }],
    [
      'a result with nothing in its list',
      {
        type: 'user',
        uuid: 's',
        parentUuid: 'a',
        message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: [null] }] },
      },
    ],
    ['a clearing of a number', clearing({ clearedThinking: 5, compactedToolIds: 7 })],
    ['a clearing of inputs that are no list', clearing({ clearedInputs: {} })],
    ['a clearing of no inputs', clearing({ clearedInputs: null, notes: [] })],
    ['a clearing without saying of what', { ...clearing({}), microcompactMetadata: undefined }],
  ])('%s', (_, odd) => {
    const prompt = { type: 'user', uuid: 'p', parentUuid: null, message: { role: 'user', content: 'go' } }
    const records = [prompt, call, odd].map((value) => decodeRecord(value))
    expect(records.map((item) => item.ok)).toEqual([true, true, true])
    const session = records.reduce(
      (folded, item) => (item.ok ? appendRecord(folded, item.record) : folded),
      emptySessionLog(),
    )
    expect(toApiMessages(flattenContext(buildContextView(session))).length).toBeGreaterThan(1)
  })
})
