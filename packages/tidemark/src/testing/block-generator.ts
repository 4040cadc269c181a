/** Blocks of every kind a conversation may hold, those nobody knows yet among them. */
import type { Block, JsonObject } from '@tidemark/core'

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

export function textFrom(choices: Choices): string {
  const count = 1 + choices.below(5)
  return (
    Array.from({ length: count }, () => choices.pick(WORDS))
      .join(' ')
      .trim() || 'text'
  )
}

export function userBlocks(choices: Choices): readonly Block[] {
  const blocks: Block[] = [{ type: 'text', text: textFrom(choices) }]
  if (choices.oneIn(4))
    blocks.push({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } })
  if (choices.oneIn(6))
    blocks.push({
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: textFrom(choices) },
    })
  if (choices.oneIn(6)) blocks.push({ type: 'hologram', frames: [1, 2], nested: { deep: null } })
  return blocks
}

export function thinkingBlock(choices: Choices): Block {
  if (choices.oneIn(4)) return { type: 'redacted_thinking', data: 'b3BhcXVl' }
  return {
    type: 'thinking',
    thinking: choices.oneIn(3) ? '' : textFrom(choices),
    signature: `sig-${choices.below(1000)}`,
  }
}

export function toolInput(choices: Choices): JsonObject {
  if (choices.oneIn(3)) return { command: textFrom(choices), nested: { list: [1, 2.5, null, true] } }
  return { file_path: `/src/${choices.below(5)}.ts`, content: textFrom(choices) }
}

export function serverPair(id: string, choices: Choices): readonly [Block, Block] {
  return [
    { type: 'server_tool_use', id, name: 'web_search', input: { query: textFrom(choices) } },
    { type: 'web_search_tool_result', tool_use_id: id, content: [] },
  ]
}

export function resultContent(choices: Choices): string | readonly Block[] {
  if (choices.oneIn(9)) return [{ type: 'text', text: ' ' }]
  if (choices.oneIn(3))
    return [
      { type: 'text', text: textFrom(choices) },
      { type: 'image', source: { type: 'url', url: 'https://example.test/a.png' } },
    ]
  return textFrom(choices)
}

/**
 * Choices as data: a list of numbers that a generator reads instead of throwing dice. A property-testing
 * library can shrink the list, and the same list always tells the same story.
 */
export class Choices {
  readonly #numbers: readonly number[]
  #at = 0

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers
  }

  get isSpent(): boolean {
    return this.#at >= this.#numbers.length
  }

  /** A whole number from 0 up to, not including, `count`; 0 once the list is spent. */
  below(count: number): number {
    const number = this.#numbers[this.#at] ?? 0
    this.#at += 1
    return Math.abs(Math.trunc(number)) % Math.max(1, count)
  }

  /** True in one of `count` cases. Spent choices say no. */
  oneIn(count: number): boolean {
    return this.below(count) === 1 % count
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0]
  }
}

/** `length` numbers from a seed, for those who want a session without a property-testing library. */
export function choicesFrom(seed: number, length: number): Choices {
  let state = (seed ^ 0x9e3779b9) >>> 0
  const numbers = Array.from({ length }, () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0
    return state ^ (state >>> 13)
  })
  return new Choices(numbers)
}
