/**
 * Watches the prompt cache of requests that a client sends by itself, with the same detection as for the engine's own:
 * what was expected to be read, and which change of the request explains a cache break.
 */
import { forecastLoggedRead, updateCacheFromResponse } from '@tidemark/core/cache/cache-forecast'
import { EMPTY_CACHE_MODEL } from '@tidemark/core/cache/cache-model'
import { createCacheMonitor, recordSentRequest } from '@tidemark/core/cache/cache-monitor'
import { checkCacheRead } from '@tidemark/core/cache/detect-break'
import type { SentMarker, SentRequest } from '@tidemark/core/cache/sent-request'
import { emptySessionCost, priceCall, sumSessionCost } from '@tidemark/core/cost/session-cost'
import { toLossRecords, withCosts } from '@tidemark/core/engine/call-model'
import type { Reply } from '@tidemark/core/engine/reply'
import { appendUnlinkedRecords } from '@tidemark/core/engine/session-writer'
import { type Block, isBlock, toBlocks } from '@tidemark/core/log/block'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import { stripMessageMarkers } from '@tidemark/core/request/build-request'
import { redact } from '@tidemark/core/text/redact'
import type { ClientMessage, ClientRequest } from '@tidemark/wire/providers/client-request'
import { type OpenSession, runOperation } from '../session/open-session.ts'
import { createTurnContext } from '../session/turn-host.ts'

export interface CacheObserver {
  /** True if the last request had the same system prompt and tools as the one before it. */
  readonly isSamePrefix: boolean
  /** Notes a request that is about to be sent. */
  noteRequest(request: ClientRequest, body: JsonObject): void
  /** Emits what the response to the last request cost, and why the cache was lost if it was; the log keeps the reason. */
  noteResponse(reply: Reply): Promise<void>
}

export function createCacheObserver(session: OpenSession): CacheObserver {
  let monitor = createCacheMonitor()
  let model = EMPTY_CACHE_MODEL
  let forecast: ReturnType<typeof forecastLoggedRead> | null = null
  const { settings, listeners } = session
  const source = session.options.source ?? 'sdk'
  let prefixes: readonly [string, string] = ['', '']
  return {
    get isSamePrefix() {
      return prefixes[0] === prefixes[1]
    },
    noteRequest(request, body) {
      prefixes = [prefixes[1], JSON.stringify([request.system, request.tools])]
      const { profile } = session.model.choice
      const sent = toSentRequest(request, body, { session, source })
      forecast = forecastLoggedRead(model, sent, profile)
      monitor = recordSentRequest(monitor, sent, forecast, settings.policy.cache.breaks)
    },
    async noteResponse({ message, usage = null }) {
      const { profile, priceList } = session.model.choice
      const { id, model: name } = message
      const at = new Date(settings.clock.now()).toISOString()
      session.state = withCosts(session.state, priceList)
      const totals = sumSessionCost(session.state.costs ?? emptySessionCost())
      const call = priceCall({ id, source: null, model: name, at, usage }, priceList)
      listeners.emit({ type: 'priced', call, totals })
      if (forecast === null) return
      const rules = { policy: settings.policy.cache.breaks, profile, prices: priceList(name, at), redact }
      const checked = checkCacheRead(monitor, { source, usage }, rules)
      monitor = checked.monitor
      if (usage !== null) model = updateCacheFromResponse(model, forecast, usage, checked.isEdited)
      forecast = null
      const { outcome } = checked
      if (outcome.kind !== 'broke') return
      await runOperation(session, appendUnlinkedRecords(createTurnContext(session), toLossRecords(outcome)))
      listeners.emit({ type: 'cache-break', event: outcome.event, diffProblem: null })
    },
  }
}

/** Returns the parts of a client's request that break detection compares, with the cache markers that the client set. */
function toSentRequest(
  request: ClientRequest,
  body: JsonObject,
  { session, source }: { readonly session: OpenSession; readonly source: string },
): SentRequest {
  const { cache, spelling } = session.model.choice.profile
  const toMarker = (control: unknown): Pick<SentMarker, 'ttl' | 'seconds'> => {
    const ttl = isObject(control) && typeof control.ttl === 'string' ? control.ttl : cache.defaultTtl
    return { ttl, seconds: cache.ttls.find(({ name }) => name === ttl)?.seconds ?? 0 }
  }
  const [tools, system] = [body.tools, body.system].map((list) => (Array.isArray(list) ? list : []))
  const messages = (body.messages ?? []) as unknown as readonly ClientMessage[]
  const listMarked = (list: readonly unknown[]) =>
    list.flatMap((item, index) => (isObject(item) && item.cache_control ? [{ index, item }] : []))
  return {
    source,
    at: session.settings.clock.now(),
    tools: (request.tools ?? []).map((tool) => ({
      name: String(tool.name ?? tool.type),
      text: JSON.stringify({ ...tool, cache_control: undefined }),
    })),
    system: (request.system ?? []).map((text, index) => ({ name: `block ${index + 1}`, text })),
    messages: { frozen: AppendList.of(messages.map(toTraced)), tail: [] },
    parameters: { model: request.model, ...spelling.readCacheParameters(request.parameters) },
    markers: [
      ...listMarked(tools ?? []).map(({ index, item }) => ({
        zone: 'tools' as const,
        index,
        ...toMarker(item.cache_control),
      })),
      ...listMarked(system ?? []).map(({ index, item }) => ({
        zone: 'system' as const,
        index,
        ...toMarker(item.cache_control),
      })),
      ...messages.flatMap(({ content }, index) =>
        listMarked(readBlocks(content)).map(({ index: block, item }) => ({
          zone: 'messages' as const,
          index,
          block,
          ...toMarker(item.cache_control),
        })),
      ),
    ],
  }
}

function readBlocks(content: unknown): readonly Block[] {
  return Array.isArray(content) ? content.filter(isBlock) : []
}

function toTraced(message: ClientMessage) {
  const content = toBlocks(message.content ?? [])
  return stripMessageMarkers({
    message: { ...message, content },
    origins: content.map(() => ''),
  })
}
