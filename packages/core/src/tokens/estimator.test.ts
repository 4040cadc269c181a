import { SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Block } from '../log/block.ts'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import {
  CHARACTER_CLASSES,
  createDefaultWeights,
  createEstimator,
  createUniformTextWeights,
  type EstimatorWeights,
  estimateImageTokens,
} from './estimator.ts'

const FIXED = createDefaultWeights(DEFAULT_POLICY.estimate)
const fixed = createEstimator(FIXED)

/** Each kind of block has a figure of its own, so that none can stand in for another. */
const WEIGHED: EstimatorWeights = {
  ...FIXED,
  text: { ...createUniformTextWeights(1), runs: { ...createUniformTextWeights(0).runs, lower: 10 } },
  toolInput: createUniformTextWeights(2),
  toolResult: createUniformTextWeights(3),
  inputForm: 'fields',
  perText: 100,
  perToolUse: 200,
  perToolField: 20,
  perToolResult: 300,
  thinking: { bySignature: 'always', perSignatureCharacter: 0.5, less: 4 },
}
const weighed = createEstimator(WEIGHED)

const text = (length: number): string => 'x'.repeat(length)
const image: Block = { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }

describe('the fixed rule', () => {
  it.each<[string, Block, number]>([
    ['text: characters / 4', { type: 'text', text: text(40) }, 10],
    ['rounded', { type: 'text', text: text(41) }, 10],
    ['rounded up from the half', { type: 'text', text: text(42) }, 11],
    ['image', image, 2_000],
    ['document', { type: 'document', source: { type: 'base64', data: text(9_000) } }, 2_000],
    ['a document given as text', { type: 'document', source: { type: 'text', data: text(40_000) } }, 10_000],
    [
      'call: name and JSON of the input',
      { type: 'tool_use', id: 'a', name: 'Read', input: { p: text(28) } },
      10,
    ],
    ['result', { type: 'tool_result', tool_use_id: 'a', content: text(80) }, 20],
    [
      'result: its texts, and each image',
      { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: text(80) }, image, image] },
      4_020,
    ],
    ['result without content', { type: 'tool_result', tool_use_id: 'a' }, 1],
    ['thinking: its text', { type: 'thinking', thinking: text(40), signature: text(4_000) }, 10],
    ['thinking that is hidden', { type: 'thinking', thinking: '', signature: text(1_000) }, 167],
    ['redacted thinking', { type: 'redacted_thinking', data: text(1_000) }, 167],
    ['anything else: its JSON', { type: 'search_result', n: text(9) }, 10],
    ['no text at all', { type: 'text', text: '' }, 1],
  ])('%s', (_, block, tokens) => {
    expect(fixed.block(block)).toBe(tokens)
  })
})

describe('weights of a family', () => {
  it.each<[string, Block, number]>([
    ['text', { type: 'text', text: 'abc de' }, 100 + 6 + 2 * 10],
    [
      'a call, field by field',
      { type: 'tool_use', id: 'i', name: 'Ed', input: { a: 'b\n', n: 12 } },
      200 + 40 + 2 * 8,
    ],
    ['a call with odd input', { type: 'tool_use', id: 'i', name: 'Ed', input: [1] }, 200 + 2 * 5],
    ['a result', { type: 'tool_result', tool_use_id: 'i', content: '1234' }, 300 + 12],
    ['thinking by its signature', { type: 'thinking', thinking: '1234', signature: text(40) }, 16],
    ['thinking whose signature says less', { type: 'thinking', thinking: '1234', signature: 'abc' }, 4],
    ['thinking without one', { type: 'thinking', thinking: '12345678' }, 8],
    ['a short signature', { type: 'thinking', thinking: '', signature: 'abc' }, 1],
  ])('%s', (_, block, tokens) => {
    expect(weighed.block(block)).toBe(tokens)
  })

  it('weighs each class by itself', () => {
    const sample = 'a\tA1\n,\\é→漢'
    const weight = (index: number): number => 2 ** index
    const weights = Object.fromEntries(CHARACTER_CLASSES.map((name, index) => [name, weight(index)]))
    const each = createEstimator({
      ...FIXED,
      text: {
        ...createUniformTextWeights(0),
        characters: { ...createUniformTextWeights(0).characters, ...weights },
      },
    })
    expect(each.text(sample)).toBe(2 ** CHARACTER_CLASSES.length - 1)
  })
})

describe('a request', () => {
  it('is its system prompt, its tools and its messages', () => {
    const payload = {
      model: 'm',
      system: [{ type: 'text', text: text(40) }],
      tools: [{ name: 'Read' }],
      messages: [
        { role: 'user' as const, content: text(20) },
        { role: 'assistant' as const, content: [{ type: 'text', text: text(8) }] },
      ],
    }
    expect(fixed.prefix(payload)).toBe(10 + 4)
    expect(fixed.payload(payload)).toBe(10 + 4 + 5 + 2)
    expect(fixed.payload({ model: 'm', messages: [] })).toBe(0)
  })
})

describe('an entry of the view', () => {
  const thought: Block = { type: 'thinking', thinking: text(40), signature: 's' }

  it('counts what it brings to a request', () => {
    const builder = new SessionBuilder()
    builder.user(text(40))
    builder.assistant('m1', [thought, { type: 'text', text: text(8) }])
    builder.attachment({ type: 'file', content: text(10_000) }, { isScreenOnly: true })
    builder.notice('info', { content: text(400) })
    const entries = [...builder.view.entries]
    expect(entries.map(fixed.entry)).toEqual([10, 12, 0, 0])
    expect(entries.map(fixed.thinking)).toEqual([0, 10, 0, 0])
  })

  it('counts an attachment as the text the model reads', () => {
    const builder = new SessionBuilder()
    builder.attachment({ type: 'hook_context', content: text(4_000) })
    expect([...builder.view.entries].map(fixed.entry)).toEqual([1_017])
  })

  it('is counted anew when it is cleared', () => {
    const builder = new SessionBuilder()
    builder.user('go')
    builder.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }])
    builder.result('c1', text(40_000))
    const before = [...builder.view.entries].map(fixed.entry)
    const metadata = {
      trigger: 'auto',
      preTokens: 0,
      tokensSaved: 0,
      compactedToolIds: ['c1'],
      clearedAttachmentUUIDs: [],
    }
    builder.notice('microcompact_boundary', { microcompactMetadata: metadata })
    const after = [...builder.view.entries].map(fixed.entry)
    expect([before, after]).toEqual([
      [1, 2, 10_000],
      [1, 2, 8, 0],
    ])
  })
})

const anyBlock = fc.oneof(
  fc.record({ type: fc.constant('text'), text: fc.string() }),
  fc.record({ type: fc.constant('thinking'), thinking: fc.string(), signature: fc.string() }),
  fc.record({ type: fc.constant('redacted_thinking'), data: fc.string() }),
  fc.record({ type: fc.constant('tool_use'), id: fc.string(), name: fc.string(), input: fc.jsonValue() }),
  fc.record({ type: fc.constant('tool_result'), tool_use_id: fc.string(), content: fc.string() }),
  fc.record({ type: fc.constantFrom('image', 'document'), source: fc.jsonValue() }),
  fc.record({ type: fc.string(), other: fc.jsonValue() }),
) as fc.Arbitrary<Block>

/** The same block with more in it. */
function longer(block: Block, more: string): Block {
  const grown = (field: unknown): string => `${field}${more}`
  switch (block.type) {
    case 'text':
      return { ...block, text: grown(block.text) }
    case 'thinking':
      return { ...block, signature: grown(block.signature) }
    case 'tool_use':
      return { ...block, name: grown(block.name) }
    case 'tool_result':
      return { ...block, content: grown(block.content) }
    default:
      return block
  }
}

describe.each([
  ['the fixed rule', fixed],
  ['weights of a family', weighed],
])('%s, whatever the block', (_, estimator) => {
  it('gives a whole figure, never 0, that does not fall when something is appended', () => {
    fc.assert(
      fc.property(anyBlock, fc.string(), (block, more) => {
        const tokens = estimator.block(block)
        expect(Number.isInteger(tokens) && tokens >= 1).toBe(true)
        expect(estimator.block(longer(block, more))).toBeGreaterThanOrEqual(tokens)
      }),
    )
  })

  it('gives a message what its blocks come to', () => {
    fc.assert(
      fc.property(fc.array(anyBlock), (blocks) => {
        const sum = blocks.reduce((total, block) => total + estimator.block(block), 0)
        expect(estimator.content(blocks)).toBe(sum)
      }),
    )
  })
})

const WEIGHTS = { flat: 2_000, patches: { pixels: 28, maxEdge: 1568, maxTokens: 1568 } }

function picture(width: number, height: number): Block {
  const head = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')
  const size = Buffer.alloc(13)
  size.writeUInt32BE(width, 0)
  size.writeUInt32BE(height, 4)
  return { type: 'image', source: { type: 'base64', data: Buffer.concat([head, size]).toString('base64') } }
}

describe('imageTokens', () => {
  it.each([
    [28, 28, 1],
    [29, 28, 2],
    [512, 512, 361],
    [1024, 1024, 1369],
    [1568, 28, 56],
    // Scaled to the longest edge: 1568 × 784.
    [3136, 1568, 1568],
    // Within the edge, but more patches than are ever made.
    [1500, 1500, 1568],
    [8000, 2, 56],
  ])('%i × %i pixels: %i tokens', (width, height, tokens) => {
    expect(estimateImageTokens(picture(width, height), WEIGHTS)).toBe(tokens)
  })

  it.each<[string, Block]>([
    ['by address', { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }],
    ['that cannot be read', { type: 'image', source: { type: 'base64', data: 'AAAA' } }],
    ['without a source', { type: 'image' }],
  ])('flat for a picture %s', (_, block) => {
    expect(estimateImageTokens(block, WEIGHTS)).toBe(2_000)
  })

  it('flat where the provider has no formula', () => {
    expect(estimateImageTokens(picture(28, 28), { flat: 2_000, patches: null })).toBe(2_000)
  })
})
