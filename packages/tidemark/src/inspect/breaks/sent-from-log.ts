/** A request as far as a log shows it: the messages in full, of what stands in front of them what is written down. */
import {
  type Block,
  blocksOf,
  type Delta,
  type Epoch,
  type Flat,
  isObject,
  isThinking,
  type JsonObject,
  mergeParameters,
  type SentMarker,
  type SentRequest,
  type SessionRecord,
  sentParameters,
} from '@tidemark/core'
import type { Call } from '../calls.ts'
import type { Lifetime } from './lifetime.ts'

export interface Prefix extends Pick<SentRequest, 'tools' | 'system'> {
  /** Null where the log does not tell. */
  readonly parameters: JsonObject | null
}

export const UNTOLD_PREFIX: Prefix = { tools: [], system: [], parameters: null }

/** Our own logs say with each epoch what the prefix is made of, and with a delta which parameters are others since. */
export function prefixBy(record: SessionRecord, before: Prefix): Prefix {
  const { epoch, delta } = record as { readonly epoch?: Epoch; readonly delta?: Delta }
  if (record.type !== 'system') return before
  if (!Array.isArray(epoch?.tools) || !Array.isArray(epoch.sections)) return changedBy(delta, before)
  return {
    parameters: isObject(epoch.parameters) ? epoch.parameters : null,
    tools: epoch.tools.map((tool, index) => ({
      name: String(tool.name ?? index),
      text: JSON.stringify(tool),
    })),
    system: epoch.sections.map(({ name, text }) => ({ name, text })),
  }
}

function changedBy(delta: Delta | undefined, before: Prefix): Prefix {
  const { parameters } = before
  const changes = delta?.parameters
  if (parameters === null || !isObject(changes)) return before
  return { ...before, parameters: mergeParameters(parameters, changes as JsonObject) }
}

export interface LoggedRequest {
  readonly call: Call
  readonly at: number
  readonly flat: Flat
  readonly prefix: Prefix
  readonly lifetime: Lifetime
}

export function sentFromLog({ call, at, flat, prefix, lifetime }: LoggedRequest): SentRequest {
  const { parameters, ...front } = prefix
  const told = sentParameters(call.model, parameters ?? {})
  const speed = call.usage?.speed
  return {
    source: sourceOf(call),
    at,
    ...front,
    messages: flat,
    parameters: typeof speed === 'string' ? { ...told, speed } : told,
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
