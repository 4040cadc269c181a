/** Hosts with habits drawn at random, and one run of each: direct, or with `tide.fetch` from some request on. */
import { createManualClock } from '@tidemark/simulator'
import {
  createDropInWorld,
  type DropInWorld,
  HostAgent,
  type HostBlock,
  type HostMessage,
  sumRequests,
} from './host-agent.ts'

type Body = Record<string, unknown>

/** What a host does with each of its requests. */
export interface HostHabits {
  /**
   * Where the host sets cache markers. `tail`: on its last block. `results`: on the last tool result, before a reminder.
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
  /** The number of messages after the first that the host sends; the ones before are dropped. */
  readonly slides: number | null
  /** Minutes between one request and the next, in turn. */
  readonly gaps: readonly number[]
  readonly promptTokens: number
  readonly steps: number
  /** Requests that go directly to the provider before Tidemark is switched on. */
  readonly directFirst: number
  readonly window: number
  readonly resultTokens: number
}

export interface HostRun {
  /** The bill after each answered request of the host. */
  readonly bills: readonly number[]
  readonly refused: number
  readonly error: string | null
  /** Compactions and clearings. */
  readonly rewrites: number
  readonly passed: readonly string[]
}

/** Draws the habits of one host; the same seed gives the same habits. */
export function drawHabits(seed: number): HostHabits {
  let state = (seed * 2_654_435_761) % 4_294_967_296
  const random = (): number => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
  for (let round = 0; round < 4; round += 1) random()
  const pick = <T>(...values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
  const markers = pick<HostHabits['markers']>('none', 'tail', 'results', 'results', 'system', 'automatic')
  return {
    markers,
    lifetimes: pick<HostHabits['lifetimes']>(['5m', '5m'], ['1h', '5m'], ['1h', '1h']),
    reminder: markers === 'results' || pick(true, false),
    date: pick(true, false, false, false),
    cleared: pick<HostHabits['cleared']>('never', 'never', 'each', 'batches'),
    slides: pick(null, null, null, 9),
    gaps: pick([0.1], [0.1], [0.1], [0.1, 0.1, 6], [6], [6, 6, 0.1], [70, 0.1]),
    promptTokens: pick(20, 20, 20, 8_000, 14_000),
    steps: pick(2, 3, 6, 12, 20, 40),
    directFirst: pick(0, 0, 0, 3, 9),
    window: pick(200_000, 200_000, 30_000),
    resultTokens: pick(300, 700),
  }
}

function withText({ role, content }: HostMessage, text: string): HostMessage {
  return { role, content: [...toBlocks(content), { type: 'text', text }] }
}

function toBlocks(content: HostMessage['content']): readonly HostBlock[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function changeAt(
  messages: readonly HostMessage[],
  index: number,
  change: (message: HostMessage) => HostMessage,
): readonly HostMessage[] {
  return messages.map((message, at) => (at === index ? change(message) : message))
}

/** Returns the request as the host sends it. */
function prepareBody(habits: HostHabits, body: Body, number: number): Body {
  let messages = body.messages as readonly HostMessage[]
  const isAnswer = ({ role }: HostMessage): boolean => role === 'assistant'
  if (habits.slides !== null && messages.length > habits.slides) {
    const from = messages.findIndex(
      (each, at) => at >= messages.length - (habits.slides ?? 0) && isAnswer(each),
    )
    messages = [...messages.slice(0, 1), ...messages.slice(from)]
  }
  const old = { never: 0, each: messages.length - 8, batches: Math.floor((messages.length - 4) / 10) * 10 }
  messages = messages.map(({ role, content }, at) => ({
    role,
    content: at < old[habits.cleared] && typeof content !== 'string' ? content.map(clearResult) : content,
  }))
  if (habits.date) messages = changeAt(messages, 0, (each) => withText(each, `It is 12:${10 + number}.`))
  const last = messages.length - 1
  if (habits.reminder) {
    if (habits.markers === 'results') messages = changeAt(messages, last, (each) => withMarker(each, habits))
    messages = changeAt(messages, last, (each) => withText(each, `<reminder>step ${number}</reminder>`))
  }
  if (habits.markers === 'tail') messages = changeAt(messages, last, (each) => withMarker(each, habits))
  const system =
    habits.markers === 'none' || habits.markers === 'automatic'
      ? body.system
      : [{ type: 'text', text: body.system, cache_control: toControl(habits.lifetimes[0]) }]
  return {
    ...body,
    ...(habits.markers === 'automatic' ? { cache_control: toControl(habits.lifetimes[1]) } : {}),
    system,
    messages,
  }
}

function clearResult(block: HostBlock): HostBlock {
  return block.type === 'tool_result' ? { ...block, content: '[cleared]' } : block
}

function withMarker({ role, content }: HostMessage, { lifetimes }: HostHabits): HostMessage {
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

export async function runDrawnHost(
  way: 'direct' | 'managed',
  habits: HostHabits,
  inspect: (world: DropInWorld) => void = () => {},
): Promise<HostRun> {
  const clock = createManualClock()
  const world = createDropInWorld({
    window: habits.window,
    turns: habits.steps,
    resultTokens: habits.resultTokens,
    clock,
    simulator: { clock },
  })
  const managed = world.tide.fetch({ session: 'talk', fetch: world.upstream })
  let requests = 0
  const fetch: typeof globalThis.fetch = (input, init) =>
    (way === 'direct' || requests <= habits.directFirst ? world.upstream : managed)(input, init)
  const host = new HostAgent(fetch, world.coder, {
    prepare: (body, number) => prepareBody(habits, body, number),
  })
  const words = Math.max(1, Math.round(habits.promptTokens / 5))
  host.messages.push({ role: 'user', content: `Fix the sums. ${'The sums are wrong. '.repeat(words)}` })
  const bills: number[] = []
  let error: string | null = null
  try {
    for (let goesOn = true; goesOn && requests < MAX_REQUESTS; ) {
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
    rewrites: world.events.filter(({ type }) => type === 'compact' || type === 'microcompact').length,
    passed: world.listMessages('request-passed'),
  }
}
