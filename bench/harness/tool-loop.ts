/** The requests of a tool loop, a response with a call, then its answer, for ever: what the cases on requests send. */
import {
  type AssembledRequest,
  appendRecord,
  assembleRequest,
  buildRequestPrefix,
  type ContextView,
  createPrefixSnapshot,
  DEFAULT_POLICY,
  defineProviderProfile,
  emptyContextView,
  emptySessionLog,
  type FlattenedContext,
  flattenContext,
  type SessionLog,
  type SessionRecord,
  updateContextView,
} from '@tidemark/core'

const profile = defineProviderProfile()
const epoch = createPrefixSnapshot(
  {
    sections: [{ name: 'rules', part: 'static', text: 'You help.' }],
    tools: ['Bash', 'Edit', 'Read'].map((name) => ({ name, input_schema: { type: 'object' } })),
    model: 'model-a',
    parameters: { max_tokens: 1_000 },
  },
  profile,
)
const front = buildRequestPrefix({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })

interface Told {
  readonly session: SessionLog
  readonly view: ContextView
  readonly flat: FlattenedContext
}

/**
 * Gives, at each call, requests of a conversation from so many messages on, `count` behind the first. Each call
 * goes its own way from there: its messages are others, of which nothing can be known yet.
 */
export function requestsBehind(length: number, count: number): () => readonly AssembledRequest[] {
  let told: Told = {
    session: emptySessionLog(),
    view: emptyContextView(),
    flat: flattenContext(emptyContextView()),
  }
  for (let index = 0; index <= length; index += 1) told = after(told, loopRecord(index))
  return () => {
    const requests: AssembledRequest[] = []
    let state = told
    for (let index = length + 1; requests.length <= count; index += 1) {
      state = after(state, loopRecord(index))
      if (index % 2 === 0 && index > length + 4) requests.push(requestOf(state.flat, requests.at(-1)))
    }
    return requests
  }
}

function after({ session, view, flat }: Told, record: SessionRecord): Told {
  const grown = appendRecord(session, record)
  const seen = updateContextView(view, grown)
  return { session: grown, view: seen, flat: flattenContext(seen, flat) }
}

function requestOf(flat: FlattenedContext, previous?: AssembledRequest): AssembledRequest {
  const { markers } = DEFAULT_POLICY.cache
  return assembleRequest({ front, flat, profile, markers, ttl: '5m', clears: true }, previous)
}

/** The record at this place of the loop; the first is the prompt. */
export function loopRecord(index: number): SessionRecord {
  const links = {
    uuid: `r${index}`,
    parentUuid: index === 0 ? null : `r${index - 1}`,
    timestamp: '',
    sessionId: 's',
  }
  if (index === 0)
    return { ...links, type: 'user', message: { role: 'user', content: 'go' } } as SessionRecord
  const id = `c${Math.ceil(index / 2)}`
  const isCall = index % 2 === 1
  const content = isCall
    ? [{ type: 'tool_use', id, name: 'Read', input: { path: `/src/${id}` } }]
    : [{ type: 'tool_result', tool_use_id: id, content: `text of ${id} `.repeat(100) }]
  const message = isCall
    ? { id: `m${id}`, role: 'assistant', model: 'm', content }
    : { role: 'user', content }
  return { ...links, type: isCall ? 'assistant' : 'user', message } as unknown as SessionRecord
}
