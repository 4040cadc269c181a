/** What stands at a place of a request, and whose it is: for those who explain a change to people. */
import type { AssembledRequest } from './assemble.ts'
import { messageAt } from './count.ts'
import type { FrontPart } from './front.ts'
import type { Place } from './place.ts'
import { toolName } from './tool-order.ts'

export type PlaceSource =
  | { readonly kind: 'tool'; readonly name: string }
  | { readonly kind: 'sections'; readonly part: FrontPart; readonly names: readonly string[] }
  /** Null for what no record said: a message of a fork's own. */
  | { readonly kind: 'record'; readonly uuid: string | null }

/** Null where the request has no such place. */
export function sourceOf({ front, messages }: AssembledRequest, place: Place): PlaceSource | null {
  if (place.zone === 'messages') {
    const message = messageAt(messages, place.index)
    return message === undefined ? null : { kind: 'record', uuid: message.origins[place.block] ?? null }
  }
  if (place.zone === 'tools') {
    const tool = front.tools[place.index]
    return tool === undefined ? null : { kind: 'tool', name: toolName(tool) }
  }
  const block = front.system[place.index]
  return block === undefined ? null : { kind: 'sections', part: block.part, names: block.sections }
}
