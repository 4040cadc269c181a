/** A request as far as a log shows it: the messages in full, of what stands in front of them what is written down. */
import {
  type Block,
  blocksOf,
  type Epoch,
  type Flat,
  isThinking,
  type SentMarker,
  type SentRequest,
  type SessionRecord,
} from '@tidemark/core'
import type { Call } from '../calls.ts'
import type { Lifetime } from './lifetime.ts'

export type Prefix = Pick<SentRequest, 'tools' | 'system'>

export const UNTOLD_PREFIX: Prefix = { tools: [], system: [] }

/** Our own logs say with each epoch what the prefix is made of. */
export function prefixBy(record: SessionRecord, before: Prefix): Prefix {
  const { epoch } = record as { readonly epoch?: Epoch }
  if (record.type !== 'system' || !Array.isArray(epoch?.tools) || !Array.isArray(epoch.sections))
    return before
  return {
    tools: epoch.tools.map((tool, index) => ({
      name: String(tool.name ?? index),
      text: JSON.stringify(tool),
    })),
    system: epoch.sections.map(({ name, text }) => ({ name, text })),
  }
}

export interface LoggedRequest {
  readonly call: Call
  readonly at: number
  readonly flat: Flat
  readonly prefix: Prefix
  readonly lifetime: Lifetime
}

export function sentFromLog({ call, at, flat, prefix, lifetime }: LoggedRequest): SentRequest {
  const speed = call.usage?.speed
  return {
    source: sourceOf(call),
    at,
    ...prefix,
    messages: flat,
    parameters: { model: call.model, speed: typeof speed === 'string' ? speed : undefined },
    markers: [{ zone: 'messages', ...tailOf(flat), ...lifetime }],
  }
}

export function sourceOf({ agent }: Call): string {
  return agent === null ? 'repl_main_thread' : `agent:${agent}`
}

/** Where every host puts a marker: at the end. */
function tailOf({ frozen, tail }: Flat): Pick<SentMarker, 'index' | 'block'> {
  const index = frozen.length + tail.length - 1
  const last = tail.at(-1) ?? frozen.last
  const blocks: readonly Block[] = blocksOf(last?.message.content ?? [])
  return {
    index,
    block: Math.max(
      0,
      blocks.findLastIndex((block) => !isThinking(block)),
    ),
  }
}
