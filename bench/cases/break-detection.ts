/** What watching the cache costs must not grow with the conversation: forecast, snapshot and compare of one more call. */
import {
  appendRecord,
  DEFAULT_POLICY,
  defineProviderProfile,
  emptyContextView,
  emptySessionLog,
  type FlattenedContext,
  flattenContext,
  updateContextView,
} from '@tidemark/core'
import { forecastLoggedRead, updateCacheFromResponse } from '../../packages/core/src/cache/cache-forecast.ts'
import { type CacheModel, EMPTY_CACHE_MODEL } from '../../packages/core/src/cache/cache-model.ts'
import {
  type CacheBreakRules,
  type CacheMonitor,
  createCacheMonitor,
  recordSentRequest,
} from '../../packages/core/src/cache/cache-monitor.ts'
import { checkCacheRead } from '../../packages/core/src/cache/detect-break.ts'
import type { SentRequest } from '../../packages/core/src/cache/sent-request.ts'
import type { BenchCase } from '../harness/bench-case.ts'
import { loopRecord } from '../harness/tool-loop.ts'

const CALLS = 200
const ROUNDS = 15
const SOURCE = 'repl_main_thread'
const RULES: CacheBreakRules = {
  policy: DEFAULT_POLICY.cache.breaks,
  profile: defineProviderProfile(),
  prices: { input: 2, cacheRead: 0.2, write5m: 2.5, write1h: 4, output: 10 },
}
const TOOLS = ['Bash', 'Edit', 'Read'].map((name) => ({ name, text: `{"name":"${name}"}` }))
const SYSTEM = [{ name: 'identity', text: 'You help.' }]
const LIFETIME = { ttl: '5m', seconds: 300 }

/** The requests of so many calls, from a conversation of so many records on. */
function requestsFrom(length: number): readonly SentRequest[] {
  let session = emptySessionLog()
  let view = emptyContextView()
  let flat: FlattenedContext | undefined
  const requests: SentRequest[] = []
  for (let index = 0; requests.length < CALLS; index += 1) {
    session = appendRecord(session, loopRecord(index))
    view = updateContextView(view, session)
    flat = flattenContext(view, flat)
    if (index >= length && index % 2 === 0) requests.push(requestOf(flat, requests.length))
  }
  return requests
}

function requestOf(flat: FlattenedContext, call: number): SentRequest {
  const index = flat.frozen.length + flat.tail.length - 1
  return {
    source: SOURCE,
    at: call * 1_000,
    tools: TOOLS,
    system: SYSTEM,
    messages: flat,
    parameters: { model: 'model-a', effort: 'high' },
    markers: [
      { zone: 'system', index: 0, ...LIFETIME },
      { zone: 'messages', index, block: 0, ...LIFETIME },
    ],
  }
}

/** What is known before a call: of the cache, and of the requests to compare with. */
interface Known {
  readonly watch: CacheMonitor
  readonly model: CacheModel
}

/** Each reads all that the one before left, and adds a thousand tokens. */
function watched({ watch, model }: Known, sent: SentRequest, call: number): Known {
  const usage = {
    input_tokens: 5,
    output_tokens: 100,
    cache_read_input_tokens: call * 1_000,
    cache_creation_input_tokens: 1_000,
  }
  const forecast = forecastLoggedRead(model, sent, RULES.profile)
  const recorded = recordSentRequest(watch, sent, forecast, RULES.policy)
  const { monitor: next, outcome } = checkCacheRead(recorded, { source: SOURCE, usage }, RULES)
  if (outcome.kind === 'broke') throw new Error(`a false alarm: ${outcome.event.sentence}`)
  return { watch: next, model: updateCacheFromResponse(model, forecast, usage) }
}

/** The first call of a session looks at all it sends; it is made beforehand. */
function callsFrom(length: number): () => Known {
  const [first, ...rest] = requestsFrom(length)
  if (first === undefined) throw new Error('no requests')
  const begun = watched({ watch: createCacheMonitor(), model: EMPTY_CACHE_MODEL }, first, 0)
  return () => rest.reduce<Known>((known, sent, call) => watched(known, sent, call + 1), begun)
}

export const benchCase: BenchCase = {
  name: 'break-detection-is-flat',
  compares: 'forecast + snapshot + compare of a call at 10,000 records with the same at 100',
  bound: { atMost: 1.5 },
  rounds: ROUNDS,
  prepare: () => ({ subject: callsFrom(10_000), baseline: callsFrom(100) }),
}
