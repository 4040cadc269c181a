/** Standing instructions, the plan and the modes: what a person set, byte for byte, never cut and never shed. */

import type { Entry } from '../context/entry.ts'
import { textOfAttachment } from '../context/message-parts.ts'
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

/** A text and where it lies. */
export interface StandingText {
  readonly path: string
  readonly text: string
}

/** Memory files and rules, as they read now. */
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

/** The plan file; null where there is none. Between compactions the model itself writes it. */
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

/** `read` gives true, or the host's own words, while plan mode is on; false or null while it is off. */
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

/** The permission mode the host is in. It is told and never changed from here; null says nothing. */
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

// The todo list, all of it, from its source of truth: the host, or the calls that wrote it.

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
  const { session, policy, kept } = context
  const list = readTodos(toolRunsOf(historyOf(session)), policy.rehydrate.todoTools)
  if (list === null) return []
  const { items, callId, isWhole } = list
  // The newest of several updates shows one task, not the list.
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

/** A call whose input was cleared shows no list. */
function isIn(kept: Iterable<Entry>, callId: string): boolean {
  return [...kept].some(
    ({ record, cleared }) =>
      record.type === 'assistant' &&
      blocksOf(record.message.content).some(({ id }) => id === callId) &&
      !cleared?.inputs.some(({ toolUseId }) => toolUseId === callId),
  )
}

// Skills in use: newest first, each cut with a note that its text can be read again.

export interface InvokedSkill {
  readonly name: string
  readonly text: string
  /** Where it can be read again. */
  readonly path?: string
}

/** `read` gives them as the host has them, the one used last first. */
export function skillsCarrier(read: () => Given<readonly InvokedSkill[]>): Carrier {
  return simpleCarrier({
    name: 'skills',
    kind: 'skills',
    // The call that brings a skill in shows its text.
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

// Agents in the background: each that runs, or has ended and was not collected, so that none is started twice.

export interface BackgroundAgent {
  readonly id: string
  /** What it was started for. */
  readonly purpose: string
  readonly status: 'running' | 'finished' | 'failed' | 'stopped'
  /** Its result has reached the conversation. */
  readonly isCollected?: boolean
  /** Where its output lies, or how to get it. */
  readonly output?: string
}

export function agentsCarrier(read: () => Given<readonly BackgroundAgent[]>): Carrier {
  return simpleCarrier({
    name: 'agents',
    kind: 'agents',
    // The host tells the end of an agent itself, where the model is to act on it.
    tellsChanges: false,
    read: async () =>
      (await read()).filter(isOpen).map((agent) => ({ ...offer(agent), ...sheddable(agent) })),
  })
}

function isOpen({ status, isCollected = false }: BackgroundAgent): boolean {
  return status === 'running' || !isCollected
}

function offer({ id, purpose, status, output }: BackgroundAgent) {
  const content = [
    `${id} (${status}): ${purpose}`,
    ...(output === undefined ? [] : [`Output: ${output}`]),
  ].join('\n')
  return { id, attachment: { type: 'task_status', taskId: id, status, content }, source: 'host' }
}

/** One that runs is never left out. */
function sheddable({ status }: BackgroundAgent): { readonly sheddable?: 'agents' } {
  return status === 'running' ? {} : { sheddable: 'agents' }
}

// Carriers of the host's own: any state with a source of truth, within a budget.

export interface HostState {
  /** What tells it from the carrier's other things; may be left out where there is only one. */
  readonly id?: string
  readonly text: string
}

export interface HostCarrier {
  /** Also the type of the attachment, unless `type` says otherwise. */
  readonly name: string
  readonly type?: string
  /** Newest first, as it is now; none where there is nothing to say. */
  readonly read: () => Given<readonly HostState[]>
  /** Cut what is over the budget for one thing, with a note; otherwise it is left out and reported. */
  readonly mayCut?: boolean
  /** Say changes between compactions too. True unless given. */
  readonly tellsChanges?: boolean
  /** May go when a compacted view is above its target, and with what. */
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

// What hooks add after a compaction: bounded, one attachment a hook, never shed.

export interface HookOutput {
  readonly hook: string
  readonly text: string
}

/** Blank output adds nothing. */
export function hookContext(
  outputs: readonly HookOutput[],
  { budgets, measure }: Pick<CarryContext, 'budgets' | 'measure'>,
): readonly Carried[] {
  return outputs
    .filter(({ text }) => text.trim() !== '')
    .map(({ hook, text }) => {
      const key = keyFor('hooks', hook)
      const attachment = {
        type: 'hook_context',
        hook,
        content: bounded(text, budgets.hookOutputCharacters),
        key,
      }
      const tokens = measure(textOfAttachment(attachment))
      return {
        carrier: 'hooks',
        kind: 'session-start',
        key,
        attachment,
        tokens,
        source: hook,
        sheddable: null,
      }
    })
}

function bounded(text: string, characters: number): string {
  if (text.length <= characters) return text
  const head = headWithin(text, characters, (part) => part.length)
  return `${head}\n[cut: ${head.length} of ${text.length} characters are shown]`
}
