/**
 * Builds the bodies of OpenAI's APIs by extending the previous body, so that only new messages are encoded. All other
 * fields come first in the body, so appending a message only appends text.
 */
import type { TracedMessage } from '@tidemark/core/context/flatten-context'
import type { ModelStreamInput } from '@tidemark/core/engine/ports'
import type { Block } from '@tidemark/core/log/block'
import { isJsonObject, type Json, type JsonObject } from '@tidemark/core/log/json'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import type { SplitClientList } from '../providers/client-request.ts'
import type { EncodeCallOptions, EncodedRequest } from '../providers/provider-codec.ts'
import { BREAKPOINT_FIELD, EXPLICIT_BREAKPOINT } from './input-items.ts'

/** The parts of a request before its messages, in the neutral form. */
export interface RequestFront {
  readonly model: string
  readonly parameters: JsonObject
  readonly tools: readonly JsonObject[]
  readonly system: readonly Block[]
  /** Indexes of the system blocks that end a prefix to be cached. */
  readonly markedSystem: ReadonlySet<number>
}

/** How one API spells a request. */
export interface BodySpelling {
  /** The name of the list of messages in the body. */
  readonly list: string
  /** Returns all fields of the body except the list of messages. */
  toFields(front: RequestFront): JsonObject
  /** Returns the items of the system prompt, which come first in the list. */
  toSystemItems(front: RequestFront): readonly JsonObject[]
  /** Returns the items of the message at `index`. They may depend on earlier messages, and on the run of responses around it. */
  toItems(messageAt: (index: number) => TracedMessage | undefined, index: number): readonly JsonObject[]
}

/** The joined texts of the first `count` messages, which no later request changes. The next request appends to them. */
interface JoinedMessages {
  readonly frozen: AppendList<TracedMessage>
  readonly count: number
  readonly text: string
}

const NOTHING_JOINED: JoinedMessages = { frozen: AppendList.of(), count: 0, text: '' }

/** Characters that are encoded in one step. */
const STEP_CHARACTERS = 100_000

/**
 * Encodes a request body in steps. Messages that the previous body has too are not encoded again; parts of a client's own
 * list are sent as the client wrote them.
 */
export function* encodeOpenaiBody(
  call: ModelStreamInput,
  { fields = {}, previous, list = ENGINES }: EncodeCallOptions,
  spelling: BodySpelling,
): WorkInSteps<EncodedRequest> {
  const read = readCall(call)
  const { front } = read
  const before = (previous as JoinedMessages | undefined) ?? NOTHING_JOINED
  const head = JSON.stringify({ ...spelling.toFields(front), ...fields }).slice(0, -1)
  const write = (value: string, state: JoinedMessages): EncodedRequest => ({
    text: `${head},"${spelling.list}":${value}}`,
    headers: {},
    state,
  })
  if (typeof list.items === 'string') return write(JSON.stringify(list.items), before)
  const system = list.system === null ? spelling.toSystemItems(front) : withBreakpoint(list, front)
  const opening = join('', system)
  if (list.items !== null) return write(`[${yield* joinItems(opening, list.items)}]`, before)
  const { text, joined } = yield* joinMessages(read, before, spelling)
  return write(`[${opening === '' || text === '' ? opening + text : `${opening},${text}`}]`, joined)
}

const ENGINES: SplitClientList = { system: null, items: null }

/** Sets a cache breakpoint at the end of the client's system prompt, as in other sessions. Not if the client sets its own. */
function withBreakpoint(
  { system, items }: SplitClientList,
  { markedSystem }: RequestFront,
): readonly JsonObject[] {
  const given = system ?? []
  const last = given.at(-1)
  if (last === undefined || markedSystem.size === 0 || hasBreakpoint([given, items])) return given
  const { content } = last
  const parts = typeof content === 'string' ? [{ type: 'input_text', text: content }] : content
  const end = Array.isArray(parts) ? parts.at(-1) : undefined
  if (!Array.isArray(parts) || !isJsonObject(end)) return given
  const marked = {
    ...last,
    content: [...parts.slice(0, -1), { ...end, [BREAKPOINT_FIELD]: EXPLICIT_BREAKPOINT }],
  }
  return [...given.slice(0, -1), marked]
}

function hasBreakpoint(lists: Json): boolean {
  return JSON.stringify(lists).includes(`"${BREAKPOINT_FIELD}":`)
}

function* joinItems(opening: string, items: readonly JsonObject[]): WorkInSteps<string> {
  let text = opening
  let yielded = text.length
  for (const item of items) {
    text = join(text, [item])
    if (text.length - yielded < STEP_CHARACTERS) continue
    yield text.length - yielded
    yielded = text.length
  }
  return text
}

/** Joins the texts of all messages. `joined`: those that no later request changes. */
function* joinMessages(
  { frozen, tail }: ReadCall,
  before: JoinedMessages,
  spelling: BodySpelling,
): WorkInSteps<{ readonly text: string; readonly joined: JoinedMessages }> {
  const messageAt = (index: number): TracedMessage | undefined =>
    index < frozen.length ? frozen.at(index) : tail[index - frozen.length]
  const known = frozen.extends(before.frozen) ? before : NOTHING_JOINED
  const stable = countStable(frozen)
  let { text } = known
  let yielded = text.length
  for (let index = known.count; index < stable; index += 1) {
    text = join(text, spelling.toItems(messageAt, index))
    if (text.length - yielded < STEP_CHARACTERS) continue
    yield text.length - yielded
    yielded = text.length
  }
  const joined = { frozen, count: Math.max(stable, known.count), text }
  for (let index = joined.count; index < frozen.length + tail.length; index += 1)
    text = join(text, spelling.toItems(messageAt, index))
  return { text, joined }
}

function join(text: string, items: readonly JsonObject[]): string {
  return items.reduce((all, item) => (all === '' ? '' : `${all},`) + JSON.stringify(item), text)
}

/**
 * Returns the number of messages that cannot change. A run of responses at the end may grow, and some APIs encode a run
 * as one message.
 */
function countStable(frozen: AppendList<TracedMessage>): number {
  let count = frozen.length
  while (count > 0 && frozen.at(count - 1)?.message.role === 'assistant') count -= 1
  return count
}

interface ReadCall {
  readonly front: RequestFront
  readonly frozen: AppendList<TracedMessage>
  readonly tail: readonly TracedMessage[]
}

function readCall({ payload, raw, request }: ModelStreamInput): ReadCall {
  if (request !== undefined) {
    const { front, extra, messages, markers } = request
    const places = markers.flatMap(({ place }) => (place.zone === 'system' ? [place.index] : []))
    return {
      front: {
        model: front.model,
        parameters: { ...front.parameters, ...extra },
        tools: front.tools,
        system: front.system.map(({ block }) => block),
        markedSystem: new Set(places),
      },
      ...messages,
    }
  }
  const { model, messages, tools = [], system = [], ...parameters } = payload
  const blocks = typeof system === 'string' ? [{ type: 'text', text: system }] : system
  const traced = messages.map((message, index): TracedMessage => {
    const texts = raw?.[index]
    return { message, origins: [], ...(texts === undefined ? {} : { raw: texts }) }
  })
  return {
    front: { model, parameters: parameters as JsonObject, tools, system: blocks, markedSystem: new Set() },
    frozen: AppendList.of(),
    tail: traced,
  }
}
