/** A conversation for tests, as the requests it sends: told record by record, through the real view. */
import type { SentMarker, SentRequest } from '../../src/cache/sent-request.ts'
import { type ContextView, emptyContextView, updateContextView } from '../../src/context/context-view.ts'
import { type FlattenedContext, flattenContext } from '../../src/context/flatten-context.ts'
import { type Block, isThinkingBlock, toBlocks } from '../../src/log/block.ts'
import type { SessionRecord } from '../../src/log/record.ts'
import { appendRecord, emptySessionLog, type SessionLog } from '../../src/log/session-log.ts'
import type { MessageList } from '../../src/request/block-index.ts'

export interface Talk {
  readonly session: SessionLog
  readonly view: ContextView
  readonly flat: FlattenedContext
  readonly count: number
  readonly last: string | null
  /** What the ids of its records begin with. */
  readonly ids: string
}

export const SILENCE: Talk = {
  session: emptySessionLog(),
  view: emptyContextView(),
  flat: flattenContext(emptyContextView()),
  count: 0,
  last: null,
  ids: 'r',
}

/** One more record; `fields` may set whatever a record has. */
export function told(talk: Talk, fields: object): Talk {
  const links = {
    uuid: `${talk.ids}${talk.count}`,
    parentUuid: talk.last,
    timestamp: '2026-01-01T00:00:00.000Z',
    sessionId: 's',
  }
  const record = { ...links, ...fields } as unknown as SessionRecord
  const session = appendRecord(talk.session, record)
  const view = updateContextView(talk.view, session)
  return {
    ...talk,
    session,
    view,
    flat: flattenContext(view, talk.flat),
    count: talk.count + 1,
    last: links.uuid,
  }
}

export function prompted(talk: Talk, content: string | readonly Block[]): Talk {
  return told(talk, { type: 'user', message: { role: 'user', content } })
}

export function responded(talk: Talk, content: readonly Block[]): Talk {
  const message = { id: `m${talk.count}`, role: 'assistant', model: 'model-a', content }
  return told(talk, { type: 'assistant', message })
}

/** A response with calls, then their results. */
export function rounded(talk: Talk, calls: number, text: string, thinking = ''): Talk {
  const ids = Array.from({ length: calls }, (_, index) => `c${talk.count}-${index}`)
  const thought = thinking === '' ? [] : [{ type: 'thinking', thinking, signature: 'x' }]
  const uses = ids.map((id) => ({ type: 'tool_use', id, name: 'Read', input: { path: id } }))
  const results = ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: `${id}: ${text}` }))
  return told(responded(talk, [...thought, ...uses]), {
    type: 'user',
    message: { role: 'user', content: results },
  })
}

export const TEXT: string = 'words of some length, as people and tools write them; '.repeat(80)

/** A prompt and ten rounds: some 20,000 tokens. */
export function longTalk(): Talk {
  let talk = prompted(SILENCE, 'look into it')
  for (let round = 0; round < 10; round += 1) talk = rounded(talk, 2, TEXT)
  return talk
}

export const TOOLS: SentRequest['tools'] = ['Bash', 'Edit', 'Read'].map((name) => ({
  name,
  text: `{"name":"${name}","description":"${TEXT}"}`,
}))
export const SYSTEM: SentRequest['system'] = ['identity', 'rules', 'environment'].map((name) => ({
  name,
  text: `${name}: ${TEXT}`,
}))

export interface Lifetime {
  readonly ttl: string
  readonly seconds: number
}

export const FIVE_MINUTES: Lifetime = { ttl: '5m', seconds: 300 }
export const ONE_HOUR: Lifetime = { ttl: '1h', seconds: 3600 }

/** The request a conversation sends next: system end and tail marked. */
export function requestOf(talk: Talk, at: number, lifetime: Lifetime = FIVE_MINUTES): SentRequest {
  return {
    source: 'repl_main_thread',
    at,
    tools: TOOLS,
    system: SYSTEM,
    messages: talk.flat,
    parameters: { model: 'model-a', thinking: '{"type":"adaptive"}', effort: 'high', betas: ['one'] },
    markers: [
      { zone: 'system', index: SYSTEM.length - 1, ...lifetime },
      { zone: 'messages', ...tailOf(talk.flat), ...lifetime },
    ],
  }
}

/** The last block that may carry a marker. */
export function tailOf({ frozen, tail }: MessageList): Pick<SentMarker, 'index' | 'block'> {
  for (let index = frozen.length + tail.length - 1; index >= 0; index -= 1) {
    const sent = index < frozen.length ? frozen.at(index) : tail[index - frozen.length]
    const block = toBlocks(sent?.message.content ?? []).findLastIndex((each) => !isThinkingBlock(each))
    if (block !== -1) return { index, block }
  }
  return { index: 0, block: 0 }
}
