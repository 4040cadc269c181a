/** From a request as the engine puts it together to what is watched of it. Costs nothing while the front is the same. */
import { isObject, type Json, type JsonObject } from '../conversation/json.ts'
import type { CacheRules } from '../policy/profile.ts'
import type { AssembledRequest } from '../prompt/assemble.ts'
import { levelOf } from '../prompt/cache-key.ts'
import type { Front } from '../prompt/front.ts'
import type { PlannedMarker } from '../prompt/markers.ts'
import { toolName } from '../prompt/tool-order.ts'
import type { SentMarker, SentParameters, SentPiece, SentRequest } from './sent.ts'

/** What is known only when a request goes out. */
export interface Sending extends Pick<SentRequest, 'source' | 'at' | 'forkOf' | 'touched'> {
  readonly cache: Pick<CacheRules, 'ttls' | 'defaultTtl'>
  /** Facts that are not sent and may tell why a cache is lost: overage, mode, strategy. */
  readonly circumstances?: Readonly<Record<string, string>>
  /** What was made of the request before: pieces of a front that still stands are taken over. */
  readonly previous?: WatchedRequest
}

export interface WatchedRequest extends SentRequest {
  readonly front: Front
}

export function sentRequest(request: AssembledRequest, sending: Sending): WatchedRequest {
  const { cache, previous, circumstances, ...given } = sending
  const { front, messages, markers, extra } = request
  const pieces = previous?.front === front ? previous : piecesOf(front)
  return {
    ...given,
    front,
    tools: pieces.tools,
    system: pieces.system,
    messages,
    parameters: sentParameters(front.model, { ...front.parameters, ...extra }, circumstances),
    markers: markers.map((marker) => markerOf(marker, cache)),
  }
}

/** Section by section, in the order in which they are sent. */
function piecesOf({ tools, system, standing }: Front): Pick<SentRequest, 'tools' | 'system'> {
  const texts = new Map(standing.epoch.sections.map(({ name, text }) => [name, text]))
  const names = system.flatMap(({ sections }) => sections)
  return {
    tools: tools.map((tool): SentPiece => ({ name: toolName(tool), text: JSON.stringify(tool) })),
    system: names.map((name): SentPiece => ({ name, text: texts.get(name) ?? '' })),
  }
}

const OWN = new Set(['speed', 'thinking', 'tool_choice', 'betas', 'output_config'])

/** What a provider caches by of the fields around the messages, in the shape in which it is compared. */
export function sentParameters(
  model: string,
  fields: JsonObject,
  circumstances: Sending['circumstances'] = {},
): SentParameters {
  const { effort, ...output } = isObject(fields.output_config) ? fields.output_config : {}
  const rest = Object.entries(fields).filter(([name]) => !OWN.has(name) && isKeyed(name))
  const others = { ...Object.fromEntries(rest), ...(Object.keys(output).length === 0 ? {} : { output }) }
  return {
    model,
    speed: textOf(fields.speed),
    effort: typeof effort === 'string' ? effort : undefined,
    thinking: textOf(fields.thinking),
    toolChoice: textOf(fields.tool_choice),
    betas: Array.isArray(fields.betas) ? fields.betas.map(String) : undefined,
    others: {
      ...Object.fromEntries(Object.entries(others).map(([name, value]) => [name, JSON.stringify(value)])),
      ...circumstances,
    },
  }
}

/** What a provider edits by itself is no key of its cache, and explains much. */
function isKeyed(name: string): boolean {
  return levelOf(name) !== null || name === 'context_management'
}

function textOf(value: Json | undefined): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function markerOf({ place, control }: PlannedMarker, { ttls, defaultTtl }: Sending['cache']): SentMarker {
  const ttl = typeof control.ttl === 'string' ? control.ttl : defaultTtl
  const seconds = ttls.find(({ name }) => name === ttl)?.seconds ?? 0
  return { ...place, ttl, seconds, ...(typeof control.scope === 'string' ? { scope: control.scope } : {}) }
}
