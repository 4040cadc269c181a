/** The built-in context sources: instructions, plan, modes, todos, skills, agents, host state and hook output. */

import { type ContextEntry, formatAttachmentText } from '../context/context-entry.ts'
import { readPlanText, readTodoList } from '../facts/todo-list.ts'
import { hasToolRunSucceeded, listToolRuns } from '../facts/tool-runs.ts'
import { listBranchRecords } from '../log/session-log.ts'
import type { DroppableSource } from '../policy/compact-policy.ts'
import { takeHeadWithinTokens } from '../text/truncate-text.ts'
import {
  type ContextSource,
  createAttachmentKey,
  createListSource,
  type SourceAttachment,
  type SourceContext,
  type SourceItem,
  type ValueOrPromise,
} from './context-source.ts'

// Context sources for what the user has set: instructions, plan and modes. Their text is attached byte for byte, never
// shortened or dropped.

/** The path of a file and its text. */
export interface FileText {
  readonly path: string
  readonly text: string
}

/** Creates the context source of memory files and rules, which attaches their current text. */
export function instructionsSource(read: () => ValueOrPromise<readonly FileText[]>): ContextSource {
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

/**
 * Creates the context source of the plan file; `read` returns null if there is none. Without `read`, the newest plan that
 * the model submitted with a tool call is taken from the records. Attached only after compactions, since in between the
 * model itself writes the plan.
 */
export function planSource(read?: () => ValueOrPromise<FileText | null>): ContextSource {
  return createListSource({
    name: 'plan',
    kind: 'plan',
    tellsChanges: false,
    read: async (context) => {
      if (read === undefined) return readPlanFromRecords(context)
      const plan = await read()
      return plan === null ? [] : [toPlanItem(plan.path, plan.text, plan.path)]
    },
  })
}

function toPlanItem(path: string, text: string, source: string): SourceItem {
  const attachment = { type: 'plan_file_reference', planFilePath: path, planContent: text }
  return { id: path, attachment, source }
}

/** Returns the newest plan that a tool such as `ExitPlanMode` was called with, unless kept messages show that call. */
function readPlanFromRecords({ session, kept }: SourceContext): readonly SourceItem[] {
  const run = listToolRuns(listBranchRecords(session)).findLast(
    (each) => hasToolRunSucceeded(each) && readPlanText(each) !== null,
  )
  const text = run === undefined ? null : readPlanText(run)
  if (run === undefined || text === null) return []
  const path = `the call ${run.id}`
  if (isCallKept(kept, { callId: run.id, callUuid: run.uuid }))
    return [{ id: path, why: `${path} is among the kept messages` }]
  return [toPlanItem(path, text, run.id)]
}

const PLAN_MODE_TEXT =
  'Only read and plan: change no file, run nothing that changes anything, until the user has approved the plan.'

/**
 * Creates the context source of plan mode. `read` returns true or the host's own text while plan mode is on, false or
 * null while it is off.
 */
export function planModeSource(read: () => ValueOrPromise<boolean | string | null>): ContextSource {
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

// The context source of the todo list. The host supplies the list, or it is read from the tool calls that wrote it.

/** An item of the host's todo list. */
export interface Todo {
  readonly content: string
  readonly status: string
}

interface TodosSourceOptions {
  /** Returns the host's todo list. If omitted, the list is read from the tool calls in the log. */
  readonly read?: () => ValueOrPromise<readonly Todo[]>
  /**
   * True to append changes when they happen, not only after a compaction. Useful if the list is changed outside the
   * conversation. Default: false.
   */
  readonly tellsChanges?: boolean
}

/** Creates the context source of the todo list. */
export function todosSource({ read, tellsChanges = false }: TodosSourceOptions = {}): ContextSource {
  return createListSource({
    name: 'todos',
    kind: 'todos',
    tellsChanges,
    read: async (context) =>
      read === undefined ? readFromRecords(context) : toTodoItems(await read(), context, 'host'),
  })
}

/** Returns the newest todo list that a tool call wrote, unless kept messages show that call. */
function readFromRecords(context: SourceContext): readonly SourceItem[] {
  const { session, policy, kept } = context
  const list = readTodoList(listToolRuns(listBranchRecords(session)), policy.rehydrate.todoTools)
  if (list === null) return []
  const { items, callId, callUuid, isWhole } = list
  // A tool call that updates one task does not show the whole todo list, so the list is attached anyway.
  if (isWhole && isCallKept(kept, { callId, callUuid }))
    return [{ id: '', why: `the call ${callId} is among the kept messages` }]
  const todos = items.map(({ text, status }) => ({ content: text, status }))
  return toTodoItems(todos, context, callId)
}

/** Returns the todo list as one item of the context source; empty if the list is empty. */
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

/** Returns true if the kept messages contain the tool call with its input. A call whose input was cleared does not count. */
function isCallKept(
  kept: Iterable<ContextEntry>,
  { callId, callUuid }: { readonly callId: string; readonly callUuid: string },
): boolean {
  return [...kept].some(
    ({ record, cleared }) =>
      record.uuid === callUuid && !cleared?.inputs.some(({ toolUseId }) => toolUseId === callId),
  )
}

// The context source of skills in use, newest first. A long skill is cut, with a note on where to read the full text.

/** A skill in use. `text`: its instructions as the model has read them. */
export interface InvokedSkill {
  readonly name: string
  readonly text: string
  /** Path from which the model can read the skill's full text again. */
  readonly path?: string
}

/**
 * Creates the context source of skills. `read` returns the skills that the host has loaded, most recently used first. It
 * gets the session and the messages that stay, for a host that reads its skills from the log.
 */
export function skillsSource(
  read: (context: SourceContext) => ValueOrPromise<readonly InvokedSkill[]>,
): ContextSource {
  return createListSource({
    name: 'skills',
    kind: 'skills',
    // Changes are not appended, because the result of the tool call that loads a skill already shows its text.
    tellsChanges: false,
    isWhole: false,
    limit: ({ budgets }) => ({ ...budgets.skills, count: Number.POSITIVE_INFINITY }),
    read: async (context) =>
      (await read(context)).map(({ name, text, path }) => ({
        id: name,
        attachment: { type: 'invoked_skills', name, ...(path === undefined ? {} : { path }), content: text },
        source: path ?? name,
        sheddable: 'skills' as const,
        cutNote: (shown: string, whole: string) =>
          `[cut: ${shown.length} of ${whole.length} characters are shown; read ${path ?? `the skill "${name}"`} again for the full text]`,
      })),
  })
}

// The context source of background agents that still run, or whose result was not collected yet, so that the model does
// not start them twice.

/** An agent that the host runs beside the conversation. */
export interface BackgroundAgent {
  readonly id: string
  /** The task for which the agent was started. */
  readonly purpose: string
  /** `interrupted`: the program ended while the agent was working. */
  readonly status: 'running' | 'finished' | 'failed' | 'stopped' | 'interrupted'
  /** True if the agent's result is already in the conversation. */
  readonly isCollected?: boolean
  /** True to list the agent even if its result was collected, because it can be asked again. Default: false. */
  readonly isAskable?: boolean
  /** Place of the agent's output, or how to get it. */
  readonly output?: string
}

/** Creates the context source of background agents, with one item for each agent that the model should know of. */
export function agentsSource(read: () => ValueOrPromise<readonly BackgroundAgent[]>): ContextSource {
  return createListSource({
    name: 'agents',
    kind: 'agents',
    // The host itself reports when an agent ends, so this source does not append changes.
    tellsChanges: false,
    read: async () => (await read()).filter(isListed).map(toAgentItem),
  })
}

function isListed({ status, isCollected = false, isAskable = false }: BackgroundAgent): boolean {
  return status === 'running' || !isCollected || isAskable
}

/** Converts an agent to an item of the context source. If tokens are short, only agents that have ended may be dropped. */
function toAgentItem({ id, purpose, status, output, isCollected = false }: BackgroundAgent): SourceItem {
  const line = `${id} (${status}): ${purpose}`
  const content = output === undefined ? line : `${line}\nOutput: ${output}`
  const collected = isCollected && status !== 'running' ? { isCollected } : {}
  const attachment = { type: 'task_status', taskId: id, status, ...collected, content }
  return { id, attachment, source: 'host', ...(status === 'running' ? {} : { sheddable: 'agents' }) }
}

// Context sources that the host defines for any other state, each within a token budget.

interface HostSourceItem {
  /** Identifies the item within its source; may be omitted if there is only one item. */
  readonly id?: string
  readonly text: string
}

interface HostSourceOptions {
  /** Name of the context source; also the type of its attachments, unless `type` is given. */
  readonly name: string
  readonly type?: string
  /** Returns the current items, newest first; the list may be empty. */
  readonly read: () => ValueOrPromise<readonly HostSourceItem[]>
  /** True to cut an item that exceeds the token budget and add a note. Otherwise such an item is left out and reported. */
  readonly mayCut?: boolean
  /** True to append changed items when they change, not only after a compaction. Default: true. */
  readonly tellsChanges?: boolean
  /**
   * Group with which the items may be dropped if the compacted context is above its target size. If omitted, they are
   * never dropped.
   */
  readonly sheddable?: DroppableSource
}

/** Creates a context source for any other state of the host, within the budget for such sources. */
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

// Output of hooks after a compaction: one attachment for each hook, limited in length, never dropped.

/** Text that a hook adds to the context. `hook`: the name of the hook. */
export interface HookOutput {
  readonly hook: string
  readonly text: string
}

/** Converts hook outputs to attachments; blank output is left out. */
export function toHookAttachments(
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
  const head = takeHeadWithinTokens(text, characters, (part) => part.length)
  return `${head}\n${formatCutNote(head, text)}`
}
