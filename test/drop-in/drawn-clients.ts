/** Clients with habits drawn at random, and one run of each: direct, or with `tide.fetch` from some request on. */
import { createRandomNumbers } from '@tidemark/core/testing'
import { createManualClock } from '@tidemark/simulator'
import {
  ClientAgent,
  type ClientBlock,
  type ClientMessage,
  createDropInWorld,
  type DropInWorld,
  type Fetch,
  sumRequests,
} from './client-agent.ts'
import { findRequestChanges, type RequestBody, readThinkingSignatures } from './request-changes.ts'

type Body = Record<string, unknown>

/** What a client does with each of its requests. */
export interface ClientHabits {
  /**
   * Where the client sets cache markers. `tail`: on its last block. `results`: on the last tool result, before a reminder.
   * `system`: on the system prompt only. `automatic`: one field for the whole request.
   */
  readonly markers: 'none' | 'tail' | 'results' | 'system' | 'automatic'
  /** The cache lifetimes of its markers on the system prompt and on the messages. */
  readonly lifetimes: readonly ['5m' | '1h', '5m' | '1h']
  /** A text at the end of the last message, which is another one in each request. */
  readonly reminder: boolean
  /** The time of day in the first message. */
  readonly date: boolean
  /** Old results are replaced by a placeholder; `each`: with every request another one. */
  readonly cleared: 'never' | 'each' | 'batches'
  /** The number of messages after the first that the client sends; the ones before are dropped. */
  readonly slides: number | null
  /** Minutes between one request and the next, in turn. */
  readonly gaps: readonly number[]
  readonly promptTokens: number
  readonly steps: number
  /** Requests that go directly to the provider before Tidemark is switched on. */
  readonly directFirst: number
  readonly window: number
  readonly resultTokens: number
  /** How the client asks for thinking, and what it sends back of it. */
  readonly thinking: 'off' | 'kept' | 'left-out' | 'old-left-out'
  /** A model that accepts thinking only in an unchanged context: else it refuses the request, or drops the thinking. */
  readonly binding: 'none' | 'refuses' | 'drops'
  /** The client's own `context_management`: the provider clears old results. */
  readonly contextManagement: boolean
  /** Inputs of calls that are older than the last two responses. `defaults`: fields are added, in all calls. */
  readonly inputs: 'kept' | 'trimmed' | 'redacted' | 'defaults'
  /** The time of day in the system prompt, other than in the request before. */
  readonly clock: boolean
  /** Tools that come or go after the fourth request. `toggled`: one comes and goes. */
  readonly tools: 'same' | 'withdrawn' | 'added' | 'toggled'
  /** The client names the betas with which the provider adds and removes tools in mid-conversation. */
  readonly hasToolBetas: boolean
  /** A field on user messages that the engine does not know. */
  readonly fields: boolean
  /** Number of messages after which the client replaces the older ones by a summary. */
  readonly compacts: number | null
  /** Key order within blocks and spacing of the JSON text, other than the provider's. */
  readonly reorders: boolean
}

export interface ClientRun {
  /** The bill after each answered request of the client. */
  readonly bills: readonly number[]
  readonly refused: number
  readonly error: string | null
  /** Compactions and clearings. */
  readonly rewrites: number
  readonly passed: readonly string[]
  /** How what was sent differs from what the client asked for, without what a rewrite explains. */
  readonly changes: readonly string[]
  /** True if the client got its final answer, and the window did not cut it. */
  readonly isComplete: boolean
}

/** Draws the habits of one client; the same seed gives the same habits. */
export function drawHabits(seed: number): ClientHabits {
  const random = createRandomNumbers(seed)
  const pick = <T>(...values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
  const markers = pick<ClientHabits['markers']>('none', 'tail', 'results', 'results', 'system', 'automatic')
  return {
    markers,
    lifetimes: pick<ClientHabits['lifetimes']>(['5m', '5m'], ['1h', '5m'], ['1h', '1h']),
    reminder: markers === 'results' || pick(true, false),
    date: pick(true, false, false, false),
    cleared: pick<ClientHabits['cleared']>('never', 'never', 'each', 'batches'),
    slides: pick(null, null, null, 9),
    gaps: pick([0.1], [0.1], [0.1], [0.1, 0.1, 6], [6], [6, 6, 0.1], [70, 0.1]),
    promptTokens: pick(20, 20, 20, 8_000, 14_000),
    steps: pick(2, 3, 6, 12, 20, 40),
    directFirst: pick(0, 0, 0, 3, 9),
    window: pick(200_000, 200_000, 30_000),
    resultTokens: pick(300, 700),
    thinking: pick<ClientHabits['thinking']>('off', 'off', 'kept', 'left-out', 'left-out', 'old-left-out'),
    binding: pick<ClientHabits['binding']>('none', 'none', 'none', 'none', 'refuses', 'drops', 'drops'),
    contextManagement: pick(false, false, false, true),
    inputs: pick<ClientHabits['inputs']>('kept', 'kept', 'kept', 'trimmed', 'redacted', 'defaults'),
    clock: pick(false, false, true),
    tools: pick<ClientHabits['tools']>('same', 'same', 'same', 'withdrawn', 'added', 'toggled'),
    hasToolBetas: pick(false, true),
    fields: pick(false, false, false, true),
    compacts: pick(null, null, null, 12),
    reorders: pick(false, false, true),
  }
}

/** The habits by which the table of `docs/drop-in.md` lists the drawn clients, each with its description. */
export const HABITS: Readonly<Record<string, (habits: ClientHabits) => boolean>> = {
  'cache markers on messages': ({ markers }) => marksMessages(markers),
  'cache markers on the system prompt only': ({ markers }) => markers === 'system',
  'no cache markers': ({ markers }) => markers === 'none',
  'markers that live for an hour': ({ markers, lifetimes }) => markers !== 'none' && lifetimes.includes('1h'),
  'pauses of 6 or 70 minutes': ({ gaps }) => gaps.some((minutes) => minutes > 5),
  'a reminder at the end of the last message': ({ reminder }) => reminder,
  'the time of day in the first message': ({ date }) => date,
  'the time of day in the system prompt': ({ clock }) => clock,
  '… with pauses of 6 or 70 minutes': ({ clock, gaps }) => clock && gaps.some((minutes) => minutes > 5),
  'placeholders for old results': ({ cleared }) => cleared !== 'never',
  'the oldest messages dropped': ({ slides }) => slides !== null,
  'a compaction of its own': ({ compacts }) => compacts !== null,
  'its own `context_management`': ({ contextManagement }) => contextManagement,
  'thinking sent back': ({ thinking }) => thinking === 'kept',
  'thinking bound to what came before it': ({ thinking, binding }) =>
    thinking !== 'off' && binding !== 'none',
  'thinking left out': ({ thinking }) => thinking === 'left-out' || thinking === 'old-left-out',
  'old inputs of calls trimmed or redacted': ({ inputs }) => inputs === 'trimmed' || inputs === 'redacted',
  'defaults added to inputs of calls': ({ inputs }) => inputs === 'defaults',
  'tools withdrawn': ({ tools }) => tools === 'withdrawn' || tools === 'toggled',
  'tools added': ({ tools }) => tools === 'added' || tools === 'toggled',
  'unknown fields on user messages': ({ fields }) => fields,
  'other key order and spacing': ({ reorders }) => reorders,
  'Tidemark switched on in mid-conversation': ({ directFirst }) => directFirst > 0,
}

export function marksMessages(markers: ClientHabits['markers']): boolean {
  return markers === 'tail' || markers === 'results' || markers === 'automatic'
}

/** The highest ratio to the direct bill: 1 % more where the client marks anything for the cache, and else a tenth. */
export function findAllowedRatio({ markers }: Pick<ClientHabits, 'markers'>): number {
  return markers === 'none' ? 1.1 : 1.01
}

function withText({ role, content }: ClientMessage, text: string): ClientMessage {
  return { role, content: [...toBlocks(content), { type: 'text', text }] }
}

function toBlocks(content: ClientMessage['content']): readonly ClientBlock[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function changeAt(
  messages: readonly ClientMessage[],
  index: number,
  change: (message: ClientMessage) => ClientMessage,
): readonly ClientMessage[] {
  return messages.map((message, at) => (at === index ? change(message) : message))
}

/** Returns the request as the client sends it. */
function prepareBody(habits: ClientHabits, body: Body, number: number): Body {
  let messages = dropMessages(habits, body.messages as readonly ClientMessage[])
  messages = rewriteMessages(habits, messages)
  if (habits.date) messages = changeAt(messages, 0, (each) => withText(each, `It is 12:${10 + number}.`))
  const last = messages.length - 1
  if (habits.reminder) {
    if (habits.markers === 'results') messages = changeAt(messages, last, (each) => withMarker(each, habits))
    messages = changeAt(messages, last, (each) => withText(each, `<reminder>step ${number}</reminder>`))
  }
  if (habits.markers === 'tail') messages = changeAt(messages, last, (each) => withMarker(each, habits))
  if (habits.fields)
    messages = messages.map((each) => (each.role === 'user' ? { ...each, x_origin: 'host' } : each))
  const text = habits.clock ? `${body.system}\nIt is 12:${10 + number}.` : body.system
  const system =
    habits.markers === 'none' || habits.markers === 'automatic'
      ? text
      : [{ type: 'text', text, cache_control: toControl(habits.lifetimes[0]) }]
  return {
    ...body,
    ...(habits.markers === 'automatic' ? { cache_control: toControl(habits.lifetimes[1]) } : {}),
    ...(habits.contextManagement ? { context_management: CONTEXT_MANAGEMENT } : {}),
    system,
    tools: listTools(habits, body.tools as readonly object[], number),
    messages,
  }
}

const CONTEXT_MANAGEMENT = {
  edits: [
    {
      type: 'clear_tool_uses_20250919',
      trigger: { type: 'input_tokens', value: 8_000 },
      keep: { type: 'tool_uses', value: 3 },
      clear_at_least: { type: 'input_tokens', value: 3_000 },
    },
  ],
}

/** Requests after which tools come and go. */
const TOOLS_CHANGE_AFTER = 4

const EXTRA_TOOL = {
  name: 'deploy',
  description: 'Deploys the project to production. '.repeat(20),
  input_schema: { type: 'object', properties: { target: { type: 'string' } } },
}

function listTools(
  { tools: change }: ClientHabits,
  tools: readonly object[],
  number: number,
): readonly object[] {
  const isLate = number >= TOOLS_CHANGE_AFTER
  const isIn = {
    same: false,
    withdrawn: !isLate,
    added: isLate,
    toggled: isLate && Math.floor(number / TOOLS_CHANGE_AFTER) % 2 === 1,
  }
  return isIn[change] ? [...tools, EXTRA_TOOL] : tools
}

/** Drops old messages: those before a window that slides, or those that a summary of the client replaces. */
function dropMessages(
  { slides, compacts }: ClientHabits,
  messages: readonly ClientMessage[],
): readonly ClientMessage[] {
  const cutAt = (least: number): readonly ClientMessage[] =>
    messages.slice(messages.findIndex(({ role }, at) => at >= least && role === 'assistant'))
  const first = messages[0]
  if (first === undefined) return messages
  const summarized = compacts === null ? 0 : Math.floor((messages.length - 3) / compacts) * compacts
  if (summarized > 0) {
    const summary = `Summary of ${summarized} messages: ${'The sums of some modules are repaired. '.repeat(20)}`
    return [withText(first, summary), ...cutAt(summarized)]
  }
  return slides === null || messages.length <= slides ? messages : [first, ...cutAt(messages.length - slides)]
}

/** Messages at the end whose calls and thinking the client leaves as they are. */
const RECENT_MESSAGES = 4

function rewriteMessages(habits: ClientHabits, messages: readonly ClientMessage[]): readonly ClientMessage[] {
  const { length } = messages
  const cleared = { never: 0, each: length - 8, batches: Math.floor((length - 4) / 10) * 10 }[habits.cleared]
  return messages.map(({ role, content }, at) => {
    if (typeof content === 'string') return { role, content }
    const isOld = at < length - RECENT_MESSAGES
    return {
      role,
      content: content.flatMap((block): readonly ClientBlock[] => {
        if (isThinking(block))
          return habits.thinking === 'left-out' || (habits.thinking === 'old-left-out' && isOld)
            ? []
            : [block]
        const result = at < cleared ? clearResult(block) : block
        const changed = changeInput(result, habits.inputs, isOld)
        return [habits.reorders ? (reverseKeys(changed) as ClientBlock) : changed]
      }),
    }
  })
}

function isThinking({ type }: ClientBlock): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

function changeInput(block: ClientBlock, change: ClientHabits['inputs'], isOld: boolean): ClientBlock {
  if (block.type !== 'tool_use' || change === 'kept') return block
  const input = Object(block.input) as Body
  if (change === 'defaults') return { ...block, input: { ...input, replace_all: false, timeout: 120_000 } }
  if (!isOld) return block
  const shorten = (text: string): string => (change === 'redacted' ? '[redacted]' : text.slice(0, 8))
  return {
    ...block,
    input: Object.fromEntries(
      Object.entries(input).map(([name, value]) => [
        name,
        typeof value === 'string' ? shorten(value) : value,
      ]),
    ),
  }
}

function reverseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reverseKeys)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, item]) => [name, reverseKeys(item)]),
  )
}

function clearResult(block: ClientBlock): ClientBlock {
  return block.type === 'tool_result' ? { ...block, content: '[cleared]' } : block
}

function withMarker({ role, content }: ClientMessage, { lifetimes }: ClientHabits): ClientMessage {
  const blocks = toBlocks(content)
  const cache_control = toControl(lifetimes[0] === '5m' ? '5m' : lifetimes[1])
  return {
    role,
    content: blocks.map((block, at) => (at < blocks.length - 1 ? block : { ...block, cache_control })),
  }
}

function toControl(ttl: '5m' | '1h'): object {
  return ttl === '5m' ? { type: 'ephemeral' } : { type: 'ephemeral', ttl }
}

/** Requests after which a run that does not end is stopped. */
const MAX_REQUESTS = 70

const BETAS = {
  contextManagement: 'context-management-2025-06-27',
  binding: 'thinking-binding-controls-2026-08-01',
  tools: 'mid-conversation-tool-changes-2026-07-01,inline-tools-2026-09-15',
}

export async function runDrawnClient(
  way: 'direct' | 'managed',
  habits: ClientHabits,
  inspect: (world: DropInWorld) => void = () => {},
): Promise<ClientRun> {
  const clock = createManualClock()
  const modelId = habits.binding === 'none' ? 'claude-sonnet-5-5' : 'claude-opus-5-5'
  const world = createDropInWorld({
    modelId,
    window: habits.window,
    turns: habits.steps,
    resultTokens: habits.resultTokens,
    thinkingTokens: habits.thinking === 'off' ? 0 : 200,
    clock,
    simulator: { clock },
  })
  const watch = watchRequests(world, habits)
  const managed = world.tide.fetch({ session: 'talk', fetch: watch.upstream })
  let requests = 0
  const fetch: Fetch = (input, init) => {
    const text = habits.reorders
      ? JSON.stringify(JSON.parse(String(init?.body)), null, 2)
      : String(init?.body)
    const isDirect = way === 'direct' || requests <= habits.directFirst
    return watch.ask(isDirect ? watch.upstream : managed, input, { ...init, body: text })
  }
  const betas = listBetas(habits)
  const host = new ClientAgent(fetch, world.coder, {
    model: modelId,
    ...(betas.length === 0 ? {} : { headers: { 'anthropic-beta': betas.join(',') } }),
    fields: habits.thinking === 'off' ? {} : { thinking: toThinking(habits) },
    prepare: (body, number) => prepareBody(habits, body, number),
  })
  const words = Math.max(1, Math.round(habits.promptTokens / 5))
  host.messages.push({ role: 'user', content: `Fix the sums. ${'The sums are wrong. '.repeat(words)}` })
  const bills: number[] = []
  let error: string | null = null
  let goesOn = true
  try {
    while (goesOn && requests < MAX_REQUESTS) {
      requests += 1
      goesOn = await host.step()
      bills.push(sumRequests(world).dollars)
      await clock.advance((habits.gaps[requests % habits.gaps.length] ?? 0) * 60_000)
    }
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown)
  }
  inspect(world)
  await world.tide.close()
  return {
    bills,
    error,
    refused: sumRequests(world).refused,
    rewrites: countRewrites(world),
    passed: world.listMessages('request-passed'),
    changes: watch.changes,
    isComplete: error === null && !goesOn && !isCut(world),
  }
}

function listBetas({ contextManagement, hasToolBetas, binding }: ClientHabits): readonly string[] {
  return [
    ...(contextManagement ? [BETAS.contextManagement] : []),
    ...(hasToolBetas ? [BETAS.tools] : []),
    ...(binding === 'drops' ? [BETAS.binding] : []),
  ]
}

function toThinking({ binding }: ClientHabits): object {
  const block_binding = { prefix_mismatch_behavior: 'drop_block' }
  return { type: 'adaptive', ...(binding === 'drops' ? { block_binding } : {}) }
}

/** True if the context window cut the last answer. */
function isCut({ simulator }: DropInWorld): boolean {
  return simulator.requests.at(-1)?.stopReason === 'model_context_window_exceeded'
}

function countRewrites({ events }: DropInWorld): number {
  return events.filter(({ type }) => type === 'compact' || type === 'microcompact').length
}

/** Compares each request that is sent with the client's own, and plays a provider that ignores the client's unknown field. */
function watchRequests(world: DropInWorld, habits: ClientHabits) {
  const changes: string[] = []
  const received = new Set<string>()
  let given: RequestBody | null = null
  const upstream: Fetch = async (input, init) => {
    const body = JSON.parse(String(init?.body)) as RequestBody
    if (given !== null && body.model === given.model && body.max_tokens === given.max_tokens)
      for (const change of findRequestChanges(given, body, {
        received,
        isRewritten: countRewrites(world) > 0,
      }))
        changes.push(change)
    if (!habits.fields) return world.upstream(input, init)
    const messages = body.messages.map(({ x_origin: _, ...message }) => message)
    return world.upstream(input, { ...init, body: JSON.stringify({ ...body, messages }) })
  }
  const ask = async (fetch: Fetch, input: Parameters<Fetch>[0], init: RequestInit): Promise<Response> => {
    given = JSON.parse(String(init.body)) as RequestBody
    const response = await fetch(input, init)
    given = null
    const reply = (await response.clone().json()) as ClientMessage
    for (const signature of readThinkingSignatures(reply)) received.add(signature)
    return response
  }
  return { changes, upstream, ask }
}
