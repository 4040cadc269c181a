/** The built-in context sources: instructions, plan, modes, todos, skills, agents, host state and hook output. */

import type { ContextEntry } from '../context/entry.ts'
import { formatAttachmentText } from '../context/entry.ts'
import { toBlocks } from '../log/block.ts'
import { listHistory } from '../log/session.ts'
import { readTodoList } from '../log/todo-list.ts'
import { listToolRuns } from '../log/tool-calls.ts'
import type { DroppableSource } from '../policy/policy.ts'
import { takeHead } from '../summary/truncate-text.ts'
import {
  type ContextSource,
  createAttachmentKey,
  createListSource,
  type MaybePromise,
  type SourceAttachment,
  type SourceContext,
  type SourceItem,
} from './context-source.ts'

// What the user set: instructions, the plan and the modes. Byte for byte, never cut and never dropped.

/** The text of a file and its path. */
export interface SourceText {
  readonly path: string
  readonly text: string
}

/** Memory files and rules, with their current text. */
export function instructionsSource(read: () => MaybePromise<readonly SourceText[]>): ContextSource {
  return createListSource({
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
export function planSource(read: () => MaybePromise<SourceText | null>): ContextSource {
  return createListSource({
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

const PLAN_MODE_TEXT =
  'Only read and plan: change no file, run nothing that changes anything, until the person has agreed to the plan.'

/** `read` returns true, or the host's own text, while plan mode is on; false or null while it is off. */
export function planModeSource(read: () => MaybePromise<boolean | string | null>): ContextSource {
  return createListSource({
    name: 'plan-mode',
    kind: 'plan-mode',
    read: async () => {
      const mode = await read()
      if (mode === false || mode === null) return []
      const content = mode === true ? PLAN_MODE_TEXT : mode
      return [{ id: '', attachment: { type: 'plan_mode', content }, source: 'host' }]
    },
  })
}

/** The host's permission mode; null attaches nothing. Only reported: nothing here changes it. */
export function permissionSource(read: () => MaybePromise<string | null>): ContextSource {
  return createListSource({
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

export interface TodosSourceOptions {
  /** The host's list; without it the list is read from the records. */
  readonly read?: () => MaybePromise<readonly Todo[]>
  /** Also append changes between compactions: for lists changed outside the conversation. */
  readonly tellsChanges?: boolean
}

export function todosSource({ read, tellsChanges = false }: TodosSourceOptions = {}): ContextSource {
  return createListSource({
    name: 'todos',
    kind: 'todos',
    tellsChanges,
    read: async (context) =>
      read === undefined ? readFromRecords(context) : toTodoItems(await read(), context, 'host'),
  })
}

function readFromRecords(context: SourceContext): readonly SourceItem[] {
  const { session, policy, kept } = context
  const list = readTodoList(listToolRuns(listHistory(session)), policy.rehydrate.todoTools)
  if (list === null) return []
  const { items, callId, isWhole } = list
  // A call that updates one task does not show the whole list.
  if (isWhole && isCallKept(kept, callId))
    return [{ id: '', why: `the call ${callId} is among the kept messages` }]
  const todos = items.map(({ text, status }) => ({ content: text, status }))
  return toTodoItems(todos, context, callId)
}

/** None when empty. */
function toTodoItems(
  todos: readonly Todo[],
  { moment }: SourceContext,
  source: string,
): readonly SourceItem[] {
  if (todos.length === 0) return []
  const content = todos.map(({ content: text, status }) => `[${status}] ${text}`).join('\n')
  const context = moment === 'compaction' ? { context: 'post-compact' } : {}
  return [{ id: '', attachment: { type: 'todo', content, itemCount: todos.length, ...context }, source }]
}

/** A call whose input was cleared does not count. */
function isCallKept(kept: Iterable<ContextEntry>, callId: string): boolean {
  return [...kept].some(
    ({ record, cleared }) =>
      record.type === 'assistant' &&
      toBlocks(record.message.content).some(({ id }) => id === callId) &&
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
export function skillsSource(read: () => MaybePromise<readonly InvokedSkill[]>): ContextSource {
  return createListSource({
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

export function agentsSource(read: () => MaybePromise<readonly BackgroundAgent[]>): ContextSource {
  return createListSource({
    name: 'agents',
    kind: 'agents',
    // The host itself reports the end of an agent.
    tellsChanges: false,
    read: async () => (await read()).filter(isUncollected).map(toAgentItem),
  })
}

function isUncollected({ status, isCollected = false }: BackgroundAgent): boolean {
  return status === 'running' || !isCollected
}

/** A running agent is never dropped. */
function toAgentItem({ id, purpose, status, output }: BackgroundAgent): SourceItem {
  const line = `${id} (${status}): ${purpose}`
  const content = output === undefined ? line : `${line}\nOutput: ${output}`
  const attachment = { type: 'task_status', taskId: id, status, content }
  return { id, attachment, source: 'host', ...(status === 'running' ? {} : { sheddable: 'agents' }) }
}

// Sources of the host's own: any state, within a budget.

export interface HostItem {
  /** Identifies the item within the source; may be omitted if there is only one. */
  readonly id?: string
  readonly text: string
}

export interface HostSourceOptions {
  /** Also the type of the attachment, unless `type` is given. */
  readonly name: string
  readonly type?: string
  /** The current items, newest first; may be empty. */
  readonly read: () => MaybePromise<readonly HostItem[]>
  /** Cut an item that is over the budget, with a note; otherwise it is left out and reported. */
  readonly mayCut?: boolean
  /** Also append changes between compactions. Default: true. */
  readonly tellsChanges?: boolean
  /** Set if its items may be dropped when the compacted context is above its target, and with which kind. */
  readonly sheddable?: DroppableSource
}

export function hostSource({
  name,
  type = name,
  read,
  mayCut = false,
  tellsChanges = true,
  sheddable,
}: HostSourceOptions): ContextSource {
  return createListSource({
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
        ...(mayCut ? { cutNote: formatCutNote } : {}),
      })),
  })
}

function formatCutNote(shown: string, whole: string): string {
  return `[cut: ${shown.length} of ${whole.length} characters are shown]`
}

// Output of hooks after a compaction: limited in length, one attachment a hook, never dropped.

export interface HookOutput {
  readonly hook: string
  readonly text: string
}

/** Blank output is left out. */
export function attachHookOutputs(
  outputs: readonly HookOutput[],
  { budgets, measure }: Pick<SourceContext, 'budgets' | 'measure'>,
): readonly SourceAttachment[] {
  return outputs
    .filter(({ text }) => text.trim() !== '')
    .map(({ hook, text }) => {
      const key = createAttachmentKey('hooks', hook)
      const content = truncateOutput(text, budgets.hookOutputCharacters)
      const attachment = { type: 'hook_context', hook, content, key }
      const tokens = measure(formatAttachmentText(attachment))
      const item = { carrier: 'hooks', kind: 'session-start' as const, key, attachment, tokens }
      return { ...item, source: hook, sheddable: null }
    })
}

function truncateOutput(text: string, characters: number): string {
  if (text.length <= characters) return text
  const head = takeHead(text, characters, (part) => part.length)
  return `${head}\n${formatCutNote(head, text)}`
}
