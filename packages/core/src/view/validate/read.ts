/** The first look at a message: is it one at all? What cannot be read is reported and left out of all that follows. */
import { type Block, isBlock } from '../../conversation/block.ts'
import { isObject } from '../../conversation/json.ts'
import type { Role } from '../payload.ts'
import type { Fields, Report } from './finding.ts'

export interface ReadBlock {
  readonly path: string
  readonly block: Block
  /** The blocks inside a tool result. */
  readonly inner: readonly ReadBlock[]
}

export interface ReadMessage {
  readonly index: number
  readonly path: string
  readonly role: Role
  readonly fields: Fields
  /** A string is one text block. */
  readonly blocks: readonly ReadBlock[]
  /** No content at all, neither good nor bad. */
  readonly isEmpty: boolean
}

export function readMessage(message: unknown, index: number, report: Report): ReadMessage | null {
  const path = `messages.${index}`
  if (!isObject(message)) {
    report('message-shape', path, 'Expected an object with a role and content.')
    return null
  }
  const { role, content } = message
  if (!isRole(role)) {
    report('role-unknown', `${path}.role`, "Expected 'user', 'assistant' or 'system'.")
    return null
  }
  if (typeof content !== 'string' && !Array.isArray(content)) {
    report('content-shape', `${path}.content`, 'Expected a string or a list of blocks.')
    return null
  }
  const blocks = readBlocks(content, `${path}.content`, report)
  return { index, path, role, fields: message, blocks, isEmpty: content.length === 0 }
}

function isRole(role: unknown): role is Role {
  return role === 'user' || role === 'assistant' || role === 'system'
}

export function readBlocks(
  content: string | readonly unknown[],
  path: string,
  report: Report,
): readonly ReadBlock[] {
  if (typeof content === 'string') {
    return content === '' ? [] : [{ path, block: { type: 'text', text: content }, inner: [] }]
  }
  return readList(content, path, report).map((item) => ({ ...item, inner: readInner(item, report) }))
}

/** One level down and no further: a result inside a result is refused, whatever it holds. */
function readInner({ block, path }: ReadBlock, report: Report): readonly ReadBlock[] {
  const { content } = block
  return block.type === 'tool_result' && Array.isArray(content)
    ? readList(content, `${path}.content`, report)
    : []
}

function readList(content: readonly unknown[], path: string, report: Report): readonly ReadBlock[] {
  return Array.from(content).flatMap((block, index): readonly ReadBlock[] => {
    if (isBlock(block)) return [{ path: `${path}.${index}`, block, inner: [] }]
    report('block-shape', `${path}.${index}`, 'Expected an object with a type.')
    return []
  })
}

/** Every block of a message, the ones inside tool results behind the result that holds them. */
export function allBlocks(blocks: readonly ReadBlock[]): readonly ReadBlock[] {
  return blocks.flatMap((item) => [item, ...item.inner])
}
