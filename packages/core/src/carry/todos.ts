/** The todo list, all of it, from its source of truth: the host, or the last call that wrote it. */

import { blocksOf } from '../conversation/block.ts'
import { isObject } from '../conversation/json.ts'
import type { Entry } from '../view/entry.ts'
import { callsNewestFirst } from './call-walk.ts'
import type { Carrier, CarryContext, Offer } from './carrier.ts'
import { type Given, simpleCarrier } from './simple-carrier.ts'

export interface Todo {
  readonly content: string
  readonly status: string
}

export interface TodosOptions {
  /** The list as the host has it; without it the records tell. */
  readonly read?: () => Given<readonly Todo[]>
  /** Say changes between compactions too: for lists that are changed from outside the conversation. */
  readonly tellsChanges?: boolean
}

export function todosCarrier({ read, tellsChanges = false }: TodosOptions = {}): Carrier {
  return simpleCarrier({
    name: 'todos',
    kind: 'todos',
    tellsChanges,
    read: async (context) =>
      read === undefined ? fromRecords(context) : offersOf(await read(), context, 'host'),
  })
}

function fromRecords(context: CarryContext): readonly Offer[] {
  const last = lastList(context)
  if (last === null) return []
  if (isIn(context.kept, last.callId))
    return [{ id: '', why: `the call ${last.callId} is among the kept messages` }]
  return offersOf(last.todos, context, last.callId)
}

/** None when empty. */
function offersOf(todos: readonly Todo[], { moment }: CarryContext, source: string): readonly Offer[] {
  if (todos.length === 0) return []
  const content = todos.map(({ content: text, status }) => `[${status}] ${text}`).join('\n')
  const context = moment === 'compaction' ? { context: 'post-compact' } : {}
  return [{ id: '', attachment: { type: 'todo', content, itemCount: todos.length, ...context }, source }]
}

/** The newest list that was written; null where none ever was. */
export function lastList({ session, policy }: Pick<CarryContext, 'session' | 'policy'>): {
  readonly todos: readonly Todo[]
  readonly callId: string
} | null {
  for (const { call } of callsNewestFirst(session, new Set(policy.rehydrate.todoTools))) {
    const todos = todosIn(call.input)
    if (todos !== null) return { todos, callId: call.id }
  }
  return null
}

/** Under whatever name the list goes: the first field that is one. */
function todosIn(input: unknown): readonly Todo[] | null {
  if (!isObject(input)) return null
  const list = Object.values(input).find((value) => Array.isArray(value))
  return Array.isArray(list) ? list.flatMap(todoOf) : null
}

function todoOf(item: unknown): readonly Todo[] {
  if (typeof item === 'string') return [{ content: item, status: 'pending' }]
  if (!isObject(item)) return []
  const content = [item.content, item.text, item.title, item.subject].find((text) => typeof text === 'string')
  const status = typeof item.status === 'string' ? item.status : item.done === true ? 'completed' : 'pending'
  return typeof content === 'string' ? [{ content, status }] : []
}

/** A call whose input was cleared shows no list. */
function isIn(kept: Iterable<Entry>, callId: string): boolean {
  return [...kept].some(
    ({ record, cleared }) =>
      record.type === 'assistant' &&
      blocksOf(record.message.content).some(({ id }) => id === callId) &&
      !cleared?.inputs.some(({ toolUseId }) => toolUseId === callId),
  )
}
