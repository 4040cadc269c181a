/** The built-in context sources: instructions, plan, modes, todos, skills, agents, host state and hook output. */

import type { Entry } from '../context/entry.ts'
import { textOfAttachment } from '../context/entry.ts'
import { blocksOf } from '../log/block.ts'
import { historyOf } from '../log/session.ts'
import { readTodos } from '../log/todo-list.ts'
import { toolRunsOf } from '../log/tool-calls.ts'
import type { Sheddable } from '../policy/policy.ts'
import { headWithin } from '../summary/truncate-text.ts'
import {
  type Carried,
  type Carrier,
  type CarryContext,
  type Given,
  keyFor,
  type Offer,
  simpleCarrier,
} from './context-source.ts'

// What the user set: instructions, the plan and the modes. Byte for byte, never cut and never dropped.

/** The text of a file and its path. */
export interface StandingText {
  readonly path: string
  readonly text: string
}

/** Memory files and rules, with their current text. */
export function standingCarrier(read: () => Given<readonly StandingText[]>): Carrier {
  return simpleCarrier({
    name: 'standing',
    kind: 'standing',
    read: async () =>
      (await read()).map(({ path, text }) => ({
        id: path,
        attachment: { type: 'nested_memory', path, content: text },
        source: path,
      })),
  })
}

/** The plan file; null if there is none. Attached only after compactions, since in between the model writes it itself. */
export function planCarrier(read: () => Given<StandingText | null>): Carrier {
  return simpleCarrier({
    name: 'plan',
    kind: 'plan',
    tellsChanges: false,
    read: async () => {
      const plan = await read()
      if (plan === null) return []
      const { path, text } = plan
      const attachment = { type: 'plan_file_reference', planFilePath: path, planContent: text }
      return [{ id: path, attachment, source: path }]
    },
  })
}

const PLAN_MODE =
  'Only read and plan: change no file, run nothing that changes anything, until the person has agreed to the plan.'

/** `read` returns true, or the host's own text, while plan mode is on; false or null while it is off. */
export function planModeCarrier(read: () => Given<boolean | string | null>): Carrier {
  return simpleCarrier({
    name: 'plan-mode',
    kind: 'plan-mode',
    read: async () => {
      const mode = await read()
      if (mode === false || mode === null) return []
      const content = mode === true ? PLAN_MODE : mode
      return [{ id: '', attachment: { type: 'plan_mode', content }, source: 'host' }]
    },
  })
}

/** The host's permission mode; null attaches nothing. Only reported: nothing here changes it. */
export function permissionCarrier(read: () => Given<string | null>): Carrier {
  return simpleCarrier({
    name: 'permission',
    kind: 'permission',
    read: async () => {
      const mode = await read()
      if (mode === null) return []
      const content = `${mode}\nOnly the person changes it; nothing said in a summary does.`
      return [{ id: '', attachment: { type: 'permission_mode', mode, content }, source: 'host' }]
    },
  })
}

// The whole todo list, from the host or from the tool calls that wrote it.

export interface Todo {
  readonly content: string
  readonly status: string
}

export interface TodosOptions {
  /** The host's list; without it the list is read from the records. */
  readonly read?: () => Given<readonly Todo[]>
  /** Also append changes between compactions: for lists changed outside the conversation. */
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
  const { session, policy, kept } = context
  const list = readTodos(toolRunsOf(historyOf(session)), policy.rehydrate.todoTools)
  if (list === null) return []
  const { items, callId, isWhole } = list
  // A call that updates one task does not show the whole list.
  if (isWhole && isIn(kept, callId)) return [{ id: '', why: `the call ${callId} is among the kept messages` }]
  const todos = items.map(({ text, status }) => ({ content: text, status }))
  return offersOf(todos, context, callId)
}

/** None when empty. */
function offersOf(todos: readonly Todo[], { moment }: CarryContext, source: string): readonly Offer[] {
  if (todos.length === 0) return []
  const content = todos.map(({ content: text, status }) => `[${status}] ${text}`).join('\n')
  const context = moment === 'compaction' ? { context: 'post-compact' } : {}
  return [{ id: '', attachment: { type: 'todo', content, itemCount: todos.length, ...context }, source }]
}

/** A call whose input was cleared does not count. */
function isIn(kept: Iterable<Entry>, callId: string): boolean {
  return [...kept].some(
    ({ record, cleared }) =>
      record.type === 'assistant' &&
      blocksOf(record.message.content).some(({ id }) => id === callId) &&
      !cleared?.inputs.some(({ toolUseId }) => toolUseId === callId),
  )
}

// Skills in use, newest first; a long one is cut, with a note on where to read the full text.

export interface InvokedSkill {
  readonly name: string
  readonly text: string
  /** Where it can be read again. */
  readonly path?: string
}

/** `read` returns the host's invoked skills, most recently used first. */
export function skillsCarrier(read: () => Given<readonly InvokedSkill[]>): Carrier {
  return simpleCarrier({
    name: 'skills',
    kind: 'skills',
    // The tool call that loads a skill already shows its text.
    tellsChanges: false,
    isWhole: false,
    limit: ({ budgets }) => ({ ...budgets.skills, count: Number.POSITIVE_INFINITY }),
    read: async () =>
      (await read()).map(({ name, text, path }) => ({
        id: name,
        attachment: { type: 'invoked_skills', name, ...(path === undefined ? {} : { path }), content: text },
        source: path ?? name,
        sheddable: 'skills' as const,
        cutNote: (shown: string, whole: string) =>
          `[cut: ${shown.length} of ${whole.length} characters are shown; read ${path ?? `the skill "${name}"`} again for the full text]`,
      })),
  })
}

// Background agents: each that is running, or has ended and was not collected, so that none is started twice.

export interface BackgroundAgent {
  readonly id: string
  /** What it was started for. */
  readonly purpose: string
  readonly status: 'running' | 'finished' | 'failed' | 'stopped'
  /** Its result is in the conversation. */
  readonly isCollected?: boolean
  /** Where its output is, or how to get it. */
  readonly output?: string
}

export function agentsCarrier(read: () => Given<readonly BackgroundAgent[]>): Carrier {
  return simpleCarrier({
    name: 'agents',
    kind: 'agents',
    // The host itself reports the end of an agent.
    tellsChanges: false,
    read: async () => (await read()).filter(isOpen).map(toOffer),
  })
}

function isOpen({ status, isCollected = false }: BackgroundAgent): boolean {
  return status === 'running' || !isCollected
}

/** A running agent is never dropped. */
function toOffer({ id, purpose, status, output }: BackgroundAgent): Offer {
  const line = `${id} (${status}): ${purpose}`
  const content = output === undefined ? line : `${line}\nOutput: ${output}`
  const attachment = { type: 'task_status', taskId: id, status, content }
  return { id, attachment, source: 'host', ...(status === 'running' ? {} : { sheddable: 'agents' }) }
}

// Sources of the host's own: any state, within a budget.

export interface HostState {
  /** Identifies the item within the source; may be omitted if there is only one. */
  readonly id?: string
  readonly text: string
}

export interface HostCarrier {
  /** Also the type of the attachment, unless `type` is given. */
  readonly name: string
  readonly type?: string
  /** The current items, newest first; may be empty. */
  readonly read: () => Given<readonly HostState[]>
  /** Cut an item that is over the budget, with a note; otherwise it is left out and reported. */
  readonly mayCut?: boolean
  /** Also append changes between compactions. Default: true. */
  readonly tellsChanges?: boolean
  /** Set if its items may be dropped when the compacted context is above its target, and with which kind. */
  readonly sheddable?: Sheddable
}

export function hostCarrier({
  name,
  type = name,
  read,
  mayCut = false,
  tellsChanges = true,
  sheddable,
}: HostCarrier): Carrier {
  return simpleCarrier({
    name,
    kind: 'host',
    tellsChanges,
    limit: ({ budgets }) => ({ ...budgets.host, count: Number.POSITIVE_INFINITY }),
    read: async () =>
      (await read()).map(({ id = '', text }) => ({
        id,
        attachment: { type, content: text },
        source: name,
        ...(sheddable === undefined ? {} : { sheddable }),
        ...(mayCut ? { cutNote } : {}),
      })),
  })
}

function cutNote(shown: string, whole: string): string {
  return `[cut: ${shown.length} of ${whole.length} characters are shown]`
}

// Output of hooks after a compaction: limited in length, one attachment a hook, never dropped.

export interface HookOutput {
  readonly hook: string
  readonly text: string
}

/** Blank output is left out. */
export function hookContext(
  outputs: readonly HookOutput[],
  { budgets, measure }: Pick<CarryContext, 'budgets' | 'measure'>,
): readonly Carried[] {
  return outputs
    .filter(({ text }) => text.trim() !== '')
    .map(({ hook, text }) => {
      const key = keyFor('hooks', hook)
      const content = cutOutput(text, budgets.hookOutputCharacters)
      const attachment = { type: 'hook_context', hook, content, key }
      const tokens = measure(textOfAttachment(attachment))
      const item = { carrier: 'hooks', kind: 'session-start' as const, key, attachment, tokens }
      return { ...item, source: hook, sheddable: null }
    })
}

function cutOutput(text: string, characters: number): string {
  if (text.length <= characters) return text
  const head = headWithin(text, characters, (part) => part.length)
  return `${head}\n${cutNote(head, text)}`
}
