/**
 * Builds the bodies of OpenAI's APIs by extending the one before, so that only new messages are encoded. Everything else
 * comes first in the body: appending a message only appends to it.
 */
import type { TracedMessage } from '@tidemark/core/context/flatten'
import type { ModelCall } from '@tidemark/core/engine/ports'
import type { Block } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import type { Steps } from '@tidemark/core/log/work-steps'
import type { EncodedRequest, EncodeOptions } from '../providers/provider-codec.ts'

/** What comes before the messages of a request, in the neutral form. */
export interface RequestFront {
  readonly model: string
  readonly parameters: JsonObject
  readonly tools: readonly JsonObject[]
  readonly system: readonly Block[]
  /** Indexes of the system blocks at which the prompt shall be cached. */
  readonly markedSystem: ReadonlySet<number>
}

/** How one API spells a request. */
export interface BodySpelling {
  /** The name of the list of messages in the body. */
  readonly list: string
  /** Returns all fields of the body but the list. */
  toFields(front: RequestFront): JsonObject
  /** Returns the items of the system prompt, which come first in the list. */
  toSystemItems(front: RequestFront): readonly JsonObject[]
  /** Returns the items of the message at `index`. They may depend on messages before it and on the run it is part of. */
  toItems(messageAt: (index: number) => TracedMessage | undefined, index: number): readonly JsonObject[]
}

/** The messages that no later request changes, as one text that the next request appends to. */
interface JoinedMessages {
  readonly frozen: AppendList<TracedMessage>
  readonly count: number
  readonly text: string
}

const NOTHING_JOINED: JoinedMessages = { frozen: AppendList.of(), count: 0, text: '' }

/** Characters that are encoded in one step. */
const STEP_CHARACTERS = 100_000

export function* encodeBody(
  call: ModelCall,
  { fields = {}, previous }: EncodeOptions,
  spelling: BodySpelling,
): Steps<EncodedRequest> {
  const { front, frozen, tail } = readCall(call)
  const messageAt = (index: number): TracedMessage | undefined =>
    index < frozen.length ? frozen.at(index) : tail[index - frozen.length]
  const before = previous as JoinedMessages | undefined
  let joined = before !== undefined && frozen.extends(before.frozen) ? before : NOTHING_JOINED
  const stable = countStable(frozen)
  let { text } = joined
  let yielded = text.length
  for (let index = joined.count; index < stable; index += 1) {
    text = join(text, spelling.toItems(messageAt, index))
    if (text.length - yielded >= STEP_CHARACTERS) {
      yield text.length - yielded
      yielded = text.length
    }
  }
  joined = { frozen, count: Math.max(stable, joined.count), text }
  for (let index = joined.count; index < frozen.length + tail.length; index += 1)
    text = join(text, spelling.toItems(messageAt, index))
  const head = JSON.stringify({ ...spelling.toFields(front), ...fields })
  const system = join('', spelling.toSystemItems(front))
  const items = system === '' || text === '' ? system + text : `${system},${text}`
  return { text: `${head.slice(0, -1)},"${spelling.list}":[${items}]}`, headers: {}, state: joined }
}

function join(text: string, items: readonly JsonObject[]): string {
  return items.reduce((all, item) => (all === '' ? '' : `${all},`) + JSON.stringify(item), text)
}

/** A run of responses at the end may still grow, and some APIs take a run as one message. */
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

function readCall({ payload, raw, request }: ModelCall): ReadCall {
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
