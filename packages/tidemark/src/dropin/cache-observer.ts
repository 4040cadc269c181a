/**
 * Watches the prompt cache of requests that a client makes itself, with the break detection of the engine's own
 * requests: what should have been read, and which change of the request explains a cache break.
 */
import {
  type CacheForecast,
  forecastLoggedCacheRead,
  updateCacheModelFromResponse,
} from '@tidemark/core/cache/cache-forecast'
import { EMPTY_CACHE_MODEL } from '@tidemark/core/cache/cache-model'
import { createCacheMonitor, withSentRequest } from '@tidemark/core/cache/cache-monitor'
import { judgeCacheRead } from '@tidemark/core/cache/detect-break'
import type { SentMarker, SentRequest } from '@tidemark/core/cache/sent-request'
import { type CutCall, toCacheLossRecords } from '@tidemark/core/engine/call-model'
import type { Reply } from '@tidemark/core/engine/reply'
import { appendUnlinkedRecords } from '@tidemark/core/engine/session-writer'
import { isProviderRunTool } from '@tidemark/core/engine/truncated-prompt'
import { toBlocks, withoutCacheMarker } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import { stripMessageMarkers } from '@tidemark/core/request/build-request'
import type { ClientMarker } from '@tidemark/core/request/cache-markers'
import { redact } from '@tidemark/core/text/redact'
import type { ClientMessage, ClientRequest } from '@tidemark/wire/providers/client-request'
import { isSameJsonValue } from '../session/conversation-parts.ts'
import { type OpenSession, runOperation } from '../session/open-session.ts'
import { createTurnContext } from '../session/turn-host.ts'
import { emitCallCost } from './client-billing.ts'

export interface CacheObserver {
  /** True if the last request had the same system prompt and tools as the one before, and no tool that the provider runs. */
  readonly isSamePrefix: boolean
  /** Stores a request that is about to be sent, with a forecast of what it will read from the cache. */
  noteRequest(request: ClientRequest): void
  /** Emits what the response to the last request cost. After a cache break, also emits its cause and records it in the log. */
  noteResponse(reply: Reply): Promise<void>
  /** Returns the last request if it has no response yet, and forgets it. */
  takePending(): CutCall | null
}

export function createCacheObserver(session: OpenSession): CacheObserver {
  let monitor = createCacheMonitor()
  let model = EMPTY_CACHE_MODEL
  let pending: (CutCall & { readonly forecast: CacheForecast }) | null = null
  const { settings, listeners } = session
  const source = session.options.source ?? 'sdk'
  let prefixes: readonly [string, string] = ['', '']
  let isFixed = true
  return {
    get isSamePrefix() {
      return isFixed && prefixes[0] === prefixes[1]
    },
    noteRequest(request) {
      prefixes = [prefixes[1], JSON.stringify([request.system, request.tools])]
      isFixed = !(request.tools ?? []).some(isProviderRunTool)
      const { profile } = session.model.choice
      const sent = toSentRequest(request, { session, source })
      const forecast = forecastLoggedCacheRead(model, sent, profile)
      const { markers, tools } = request
      const system = (request.system ?? []).map((text) => ({ type: 'text', text }))
      const ttl = markers.at(-1)?.ttl ?? profile.cache.defaultTtl
      const { state } = session
      const prefix = { system, tools: tools ?? [] }
      pending = { request: { markers, ttl }, state, forecast, isMonitored: true, prefix }
      monitor = withSentRequest(monitor, sent, forecast, settings.policy.cache.breaks)
    },
    async noteResponse({ message, usage = null }) {
      const { profile, priceList } = session.model.choice
      const at = new Date(settings.clock.now()).toISOString()
      emitCallCost(session, message, usage, null)
      if (pending === null) return
      const { forecast } = pending
      const prices = priceList(message.model, at)
      const rules = { policy: settings.policy.cache.breaks, profile, prices, redact }
      const checked = judgeCacheRead(monitor, { source, usage }, rules)
      monitor = checked.monitor
      if (usage !== null) model = updateCacheModelFromResponse(model, forecast, usage, checked.isEdited)
      pending = null
      const { outcome } = checked
      if (outcome.kind !== 'broke') return
      await runOperation(
        session,
        appendUnlinkedRecords(createTurnContext(session), toCacheLossRecords(outcome)),
      )
      listeners.emit({ type: 'cache-break', event: outcome.event, diffProblem: null })
    },
    takePending() {
      const call = pending
      pending = null
      return call
    },
  }
}

/** Returns the parts of a client's request that break detection compares, with the cache markers that the client set. */
function toSentRequest(
  request: ClientRequest,
  { session, source }: { readonly session: OpenSession; readonly source: string },
): SentRequest {
  const { cache, spelling } = session.model.choice.profile
  const tools = request.tools ?? []
  return {
    source,
    at: session.settings.clock.now(),
    tools: tools.map((tool) => ({
      name: readToolName(tool),
      text: JSON.stringify(withoutCacheMarker(tool)),
    })),
    system: (request.system ?? []).map((text, index) => ({ name: `block ${index + 1}`, text })),
    messages: { frozen: AppendList.of(request.messages.map(toTraced)), tail: [] },
    parameters: { model: request.model, ...spelling.readCacheParameters(request.parameters) },
    markers: request.markers.flatMap((marker): readonly SentMarker[] => {
      const ttl = marker.ttl ?? cache.defaultTtl
      const seconds = cache.ttls.find(({ name }) => name === ttl)?.seconds ?? 0
      const place = findMarkedPlace(marker, tools, request.messages)
      return place === null ? [] : [{ ...place, ttl, seconds }]
    }),
  }
}

/** Returns where a marker is. Null for a marker on the whole request: the provider chooses its place. */
function findMarkedPlace(
  marker: ClientMarker,
  tools: readonly JsonObject[],
  messages: readonly ClientMessage[],
): Pick<SentMarker, 'zone' | 'index' | 'block'> | null {
  if (marker.zone === 'system') return { zone: 'system', index: marker.index }
  if (marker.zone === 'tools') {
    const index = tools.findIndex((tool) => readToolName(tool) === marker.name)
    return index === -1 ? null : { zone: 'tools', index }
  }
  if (marker.zone === 'end') return null
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const block = toBlocks(messages[index]?.content ?? []).findLastIndex((each) =>
      isSameJsonValue(each, marker.block),
    )
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

function readToolName({ name, type }: JsonObject): string {
  return String(name ?? type)
}

function toTraced(message: ClientMessage) {
  const content = toBlocks(message.content)
  return stripMessageMarkers({
    message: { ...message, content },
    origins: content.map(() => ''),
  })
}
