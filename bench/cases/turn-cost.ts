/** What a turn costs must not grow with the conversation: append, view, flatten and validate of one more record. */

import {
  appendRecord,
  type ContextView,
  defineProviderProfile,
  emptyContextView,
  emptySessionLog,
  type Finding,
  type FlattenedContext,
  flattenContext,
  type SessionLog,
  type SessionRecord,
  startValidation,
  updateContextView,
  updateValidation,
  type ValidationState,
} from '@tidemark/core'
import { validateContext } from '@tidemark/core/testing'
import type { BenchCase } from '../harness/bench-case.ts'

interface State {
  readonly session: SessionLog
  readonly view: ContextView
  readonly flat: FlattenedContext | undefined
  readonly checked: ValidationState
  readonly findings: readonly Finding[]
}

const REQUEST = { model: 'm', max_tokens: 100, tools: [{ name: 'Read', input_schema: { type: 'object' } }] }
const START: State = {
  session: emptySessionLog(),
  view: emptyContextView(),
  flat: undefined,
  checked: startValidation(defineProviderProfile({ roles: { prefill: 'allowed' } })),
  findings: [],
}
const TURNS = 100
const ROUNDS = 15

function turn(state: State, record: SessionRecord): State {
  const session = appendRecord(state.session, record)
  const view = updateContextView(state.view, session)
  const flat = flattenContext(view, state.flat)
  const checked = updateValidation(state.checked, flat)
  const findings = validateContext(checked, flat, REQUEST)
  if (findings.length > 0) throw new Error(`an invalid request: ${JSON.stringify(findings[0])}`)
  return { session, view, flat, checked, findings }
}

/** A tool loop: a response with a call, then its answer, for ever. */
function recordAt(index: number): SessionRecord {
  const links = {
    uuid: `r${index}`,
    parentUuid: index === 0 ? null : `r${index - 1}`,
    timestamp: '',
    sessionId: 's',
  }
  if (index === 0)
    return { ...links, type: 'user', message: { role: 'user', content: 'go' } } as SessionRecord
  const id = `c${Math.ceil(index / 2)}`
  const content =
    index % 2 === 1
      ? [{ type: 'tool_use', id, name: 'Read', input: { path: `/src/${id}` } }]
      : [{ type: 'tool_result', tool_use_id: id, content: `text of ${id}` }]
  const message =
    index % 2 === 1 ? { id: `m${id}`, role: 'assistant', model: 'm', content } : { role: 'user', content }
  return { ...links, type: index % 2 === 1 ? 'assistant' : 'user', message } as unknown as SessionRecord
}

function told(length: number): State {
  let state = START
  for (let index = 0; index < length; index += 1) state = turn(state, recordAt(index))
  return state
}

/** A hundred turns from where a conversation stands. Each call has one of its own, told beforehand. */
function goOn(length: number): () => State {
  const records = Array.from({ length: TURNS }, (_, index) => recordAt(length + index))
  const conversations = Array.from({ length: ROUNDS }, () => told(length))
  return () => {
    let state = conversations.pop() ?? told(length)
    for (const record of records) state = turn(state, record)
    return state
  }
}

export const benchCase: BenchCase = {
  name: 'turn-cost-is-flat',
  compares: 'append + view + flatten + validate of a record at 10,000 records with the same at 100',
  bound: { atMost: 1.5 },
  rounds: ROUNDS,
  prepare: () => ({ subject: goOn(10_001), baseline: goOn(101), calls: { subject: 1, baseline: 1 } }),
}
