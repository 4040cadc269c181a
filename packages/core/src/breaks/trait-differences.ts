/** What of the messages as a whole a provider caches by: with the first image, and without the last, it reads all anew. */
import type { Block } from '../conversation/block.ts'
import { isToolResult } from '../conversation/block.ts'
import { blocksIn, type Counted, type MessageList, messageAt, messageCount } from '../prompt/count.ts'
import type { Difference } from './reason.ts'

export function traitDifferences(before: Counted, after: Counted): readonly Difference[] {
  const [was, is] = [before.end.traits, after.end.traits]
  if (was === is) return []
  const citations: readonly Difference[] =
    was.cites === is.cites
      ? []
      : [{ kind: 'parameter-changed', name: 'citations', before: onOff(was.cites), after: onOff(is.cites) }]
  if (was.hasImages === is.hasImages) return citations
  return [
    ...citations,
    ...imageDifference(is.hasImages ? 'image-added' : 'image-removed', is.hasImages ? after : before),
  ]
}

function onOff(is: boolean): string {
  return is ? 'on' : 'off'
}

function imageDifference(
  kind: 'image-added' | 'image-removed',
  { messages }: Counted,
): readonly Difference[] {
  const found = firstImage(messages)
  return found === null ? [] : [{ kind, ...found }]
}

function firstImage(
  messages: MessageList,
): { readonly index: number; readonly origin: string | null } | null {
  for (let index = 0; index < messageCount(messages); index += 1) {
    const message = messageAt(messages, index)
    const block = message === undefined ? -1 : blocksIn(message).findIndex(holdsImage)
    if (block !== -1) return { index, origin: message?.origins[block] ?? null }
  }
  return null
}

function holdsImage(block: Block): boolean {
  if (block.type === 'image') return true
  return isToolResult(block) && Array.isArray(block.content) && block.content.some(holdsImage)
}
