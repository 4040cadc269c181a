/** Generates random content blocks of every kind that a conversation may contain, including unknown kinds. */
import type { Block } from '../src/log/block.ts'
import type { JsonObject } from '../src/log/json.ts'
import type { GeneratorChoices } from './generator-choices.ts'

const WORDS = [
  'login',
  'fehlt',
  'パス',
  'retry()',
  'a,b',
  '{"x":1}',
  '"quoted"',
  'é',
  '\n\n',
  '😀',
  'src/auth.ts',
] as const

/** Generates a text of one to five words, some of them difficult: quotes, JSON, line breaks, other scripts. */
export function generateText(choices: GeneratorChoices): string {
  const count = 1 + choices.below(5)
  return (
    Array.from({ length: count }, () => choices.pick(WORDS))
      .join(' ')
      .trim() || 'text'
  )
}

export function generateUserBlocks(choices: GeneratorChoices): readonly Block[] {
  const blocks: Block[] = [{ type: 'text', text: generateText(choices) }]
  if (choices.oneIn(4))
    blocks.push({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } })
  if (choices.oneIn(6))
    blocks.push({
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: generateText(choices) },
    })
  if (choices.oneIn(6)) blocks.push({ type: 'hologram', frames: [1, 2], nested: { deep: null } })
  return blocks
}

export function generateThinkingBlock(choices: GeneratorChoices): Block {
  if (choices.oneIn(4)) return { type: 'redacted_thinking', data: 'b3BhcXVl' }
  return {
    type: 'thinking',
    thinking: choices.oneIn(3) ? '' : generateText(choices),
    signature: `sig-${choices.below(1000)}`,
  }
}

export function generateToolInput(choices: GeneratorChoices): JsonObject {
  if (choices.oneIn(3)) return { command: generateText(choices), nested: { list: [1, 2.5, null, true] } }
  return { file_path: `/src/${choices.below(5)}.ts`, content: generateText(choices) }
}

/** Generates a call of a tool that the provider runs, and its result. */
export function generateServerToolPair(id: string, choices: GeneratorChoices): readonly [Block, Block] {
  return [
    { type: 'server_tool_use', id, name: 'web_search', input: { query: generateText(choices) } },
    { type: 'web_search_tool_result', tool_use_id: id, content: [] },
  ]
}

/** Generates the content of a tool result: a text, text and an image, or blank text, which must be repaired. */
export function generateResultContent(choices: GeneratorChoices): string | readonly Block[] {
  if (choices.oneIn(9)) return [{ type: 'text', text: ' ' }]
  if (choices.oneIn(3))
    return [
      { type: 'text', text: generateText(choices) },
      { type: 'image', source: { type: 'url', url: 'https://example.test/a.png' } },
    ]
  return generateText(choices)
}
