/**
 * Reads the current todo list and the plan from tool calls. Some tools write the whole list (`TodoWrite`, Codex's
 * `update_plan`), others create and update single tasks (`TaskCreate`, `TaskUpdate`), others write a plan as a text
 * (`ExitPlanMode`). Hosts choose their own names, so the words of a tool's name and the fields of its input decide.
 */

import { isObject } from '../log/json.ts'
import { readApprovedPlan } from './host-texts.ts'
import { toToolNameWords } from './question-answers.ts'
import { hasToolRunSucceeded, type ToolRun } from './tool-runs.ts'

export interface TodoItem {
  readonly text: string
  /** Status of the todo item as the tool call gave it; `isOpenTodo` and `isTodoInProgress` interpret it. */
  readonly status: string
}

interface TodoList {
  /** The todo items in the order they were added. */
  readonly items: readonly TodoItem[]
  /**
   * The newest tool call that changed the todo list: its id, the index of its record in the history, and whether it
   * wrote the whole list.
   */
  readonly callId: string
  /** uuid of the record with that call. */
  readonly callUuid: string
  readonly callIndex: number
  readonly isWhole: boolean
}

/** Names of tools whose input is always a whole todo list: the default of the policy field `rehydrate.todoTools`. */
export const TODO_TOOLS: readonly string[] = ['TodoWrite']

// The names and fields by which lists, tasks and plans are recognized. docs/context-sources.md lists them too.

const WRITING =
  '(?:set|write|update|edit|manage|save|store|record|create|make|add|append|replace|complete|submit|draft)'
/**
 * Names, in words, of tools that hold the model's todo list or plan. For MCP tools only `TODO_NAME` counts, because the
 * tasks of an issue tracker are not the model's.
 */
const TODO_NAME = new RegExp(
  `(?:^| |${WRITING}|read|list|get)to ?dos?(?=$| |write|read|list)|(?:^| )check ?list`,
)
const TASK_NAME = new RegExp(`(?:^| )${WRITING} ?(?:\\w+ )?tasks?(?: list)?$|(?:^| )tasks? ?${WRITING}$`)
const PLAN_NAME = new RegExp(
  `^plan$|(?:^| )(?:${WRITING}|propose|present|exit|revise|finalize) ?(?:the )?plan`,
)
/** Names of tools whose list is not the new todo list: it has items to remove, to find or to add. */
const NOT_WRITING_NAME = /^(?:delete|remove|list|get|read|search|find|fetch) /
const ADDING_NAME = /(?:^| )(?:add|append)|(?:^| )create ?(?:todos|tasks)$/

/** Fields with a list whose items state their status, in a tool of any name. */
const LIST_FIELDS = ['todos', 'plan', 'tasks']
/** Fields with a list in a tool whose name is that of a list; the status of an item is then optional. */
const NAMED_LIST_FIELDS = [
  ...LIST_FIELDS,
  ...['items', 'steps', 'list', 'entries', 'checklist', 'todo_list', 'todoList'],
]
const TEXT_FIELDS = [
  ...['content', 'subject', 'step', 'title', 'text', 'description'],
  ...['name', 'task', 'todo', 'label'],
]
const STATUS_FIELDS = ['status', 'state']
const DONE_FIELDS = [
  ...['done', 'completed', 'complete', 'checked', 'finished'],
  ...['isDone', 'isCompleted', 'is_done'],
]
const PLAN_FIELDS = ['plan', 'text', 'content', 'markdown', 'body', 'plan_text', 'planText']
/** Matches a line of a list that is given as one text, as in `- [x] Write the test`. */
const CHECK_LINE = /^(?:[-*+]|\d+[.)])? ?\[([ xX~>-])\] +(.*)$/
const LIST_TOOL_NAME = /todo|task|plan/i
/** Matches names of tools that create or update single tasks. */
const TASK_TOOL_NAME = /^(?!mcp__).*(?:todo|task)/i

/** Checks by a tool's name whether it writes or reads the todo list or the plan. */
export function isTodoOrPlanTool(name: string): boolean {
  return isListTool(name) || (!name.startsWith('mcp__') && PLAN_NAME.test(toToolNameWords(name)))
}

function isListTool(name: string): boolean {
  const words = toToolNameWords(name)
  return TODO_NAME.test(words) || (!name.startsWith('mcp__') && TASK_NAME.test(words))
}

type Input = Readonly<Record<string, unknown>>

/** Returns the current todo list, or null if no tool call wrote one. Calls that failed or have no result yet are ignored. */
export function readTodoList(
  runs: readonly ToolRun[],
  todoTools: readonly string[] = TODO_TOOLS,
): TodoList | null {
  const tracker = createTodoTracker(todoTools)
  for (const run of runs) tracker.add(run)
  return tracker.read()
}

/** Keeps the todo list up to date while tool calls are added, each with its result. */
interface TodoTracker {
  /** Returns true if the call changed the list. */
  add(run: ToolRun): boolean
  read(): TodoList | null
}

/** Creates a tracker of the todo list for one branch. `todoTools`: names of tools whose input is always a whole list. */
export function createTodoTracker(todoTools: readonly string[] = TODO_TOOLS): TodoTracker {
  let todos = new Map<string, TodoItem>()
  let made = 0
  let newest: Omit<TodoList, 'items'> | null = null
  return {
    add(run) {
      if (!hasToolRunSucceeded(run) || !isObject(run.input)) return false
      const list = readList(run.name, run.input, todoTools)
      const isWhole =
        list !== null && run.input.merge !== true && !ADDING_NAME.test(toToolNameWords(run.name))
      const task = list === null ? readCreatedTask(run.name, run.input) : null
      if (list !== null) {
        todos = addItems(isWhole ? new Map() : todos, list)
      } else if (task !== null) {
        made += 1
        todos.set(readCreatedId(run, made), task)
      } else if (!applyTaskUpdates(todos, run.name, run.input)) return false
      newest = { callId: run.id, callUuid: run.uuid, callIndex: run.callIndex, isWhole }
      return true
    },
    read: () => (newest === null ? null : { ...newest, items: [...todos.values()] }),
  }
}

/** Returns true if a tool call may change the todo list, by its name and input alone. */
export function canChangeTodoList(
  { name, input }: Pick<ToolRun, 'name' | 'input'>,
  todoTools: readonly string[],
): boolean {
  if (!isObject(input)) return false
  return TASK_TOOL_NAME.test(name) || readList(name, input, todoTools) !== null
}

/** Adds items to a list. An item replaces an earlier one with the same id, unless both are from one call. */
function addItems(todos: ReadonlyMap<string, TodoItem>, list: readonly ListedItem[]): Map<string, TodoItem> {
  const all = new Map(todos)
  const ids = new Set<unknown>()
  for (const [index, { id, text, status }] of list.entries()) {
    all.set(id === null || ids.has(id) ? `list ${todos.size + index}` : `task ${id}`, { text, status })
    ids.add(id)
  }
  return all
}

/** True unless the status says that the item is done, cancelled or deleted. Unknown statuses are open. */
export function isOpenTodo({ status }: TodoItem): boolean {
  return !/^(?:completed?|done|cancell?ed|deleted|finished)$/i.test(status)
}

export function isTodoInProgress(item: TodoItem): boolean {
  return isOpenTodo(item) && /progress|active|doing/i.test(item.status)
}

interface ListedItem extends TodoItem {
  readonly id: string | number | null
}

/**
 * Reads a list of todo items from a tool's input. If the tool's name is that of a list, texts are items too, and an item need
 * not state its status; for a tool named in `todoTools`, the list may be in any field. Null if there is no such list, or if an
 * item of a merge cannot be read; an empty list clears the todos.
 */
function readList(name: string, input: Input, todoTools: readonly string[]): readonly ListedItem[] | null {
  const isKnown = todoTools.includes(name)
  const isNamed = isKnown || (isTodoOrPlanTool(name) && !NOT_WRITING_NAME.test(toToolNameWords(name)))
  const fields = isNamed ? NAMED_LIST_FIELDS : LIST_FIELDS
  const values = isKnown ? Object.values(input) : fields.map((field) => input[field])
  const list: unknown = values.find((value) => Array.isArray(value))
  // The text of a plan is not a list, even if it contains one.
  if (!Array.isArray(list)) return isKnown || isListTool(name) ? readCheckList(values) : null
  const items = list.flatMap((value) => readItem(value, isNamed ? 'pending' : null) ?? [])
  if (input.merge === true && items.length < list.length) return null
  if (isKnown || (list.length === 0 && (isNamed || LIST_TOOL_NAME.test(name)))) return items
  return list.length > 0 && items.length === list.length ? items : null
}

const CHECK_MARKS: ReadonlyMap<string, string> = new Map([
  [' ', 'pending'],
  ['x', 'completed'],
  ['X', 'completed'],
])

/** Reads a list that is given as one text with a box before each item; null if there is none. */
function readCheckList(values: readonly unknown[]): readonly ListedItem[] | null {
  const text = values.find((value) => typeof value === 'string' && value.split('\n').some(isCheckLine))
  if (typeof text !== 'string') return null
  return text.split('\n').flatMap((line) => {
    const [, mark = '', item = ''] = CHECK_LINE.exec(line.trim()) ?? []
    return item === '' ? [] : [{ id: null, text: item, status: CHECK_MARKS.get(mark) ?? 'in_progress' }]
  })
}

function isCheckLine(line: string): boolean {
  return CHECK_LINE.test(line.trim())
}

/** Reads one todo item; null if it is not one. `status` is the default status; if it is null, the item must state its own. */
function readItem(value: unknown, status: string | null): ListedItem | null {
  if (typeof value === 'string') return status === null ? null : { id: null, text: value, status }
  if (!isObject(value)) return null
  const text = TEXT_FIELDS.map((name) => value[name]).find((given) => typeof given === 'string')
  const given = readStatus(value) ?? status
  return typeof text === 'string' && given !== null ? { id: readTaskId(value), text, status: given } : null
}

/** Returns the status that an item states, in words or as done or not done; null if it states none. */
function readStatus(item: Input): string | null {
  const status = STATUS_FIELDS.map((name) => item[name]).find((given) => typeof given === 'string')
  if (typeof status === 'string') return status
  const done = DONE_FIELDS.map((name) => item[name]).find((given) => typeof given === 'boolean')
  return done === undefined ? null : done ? 'completed' : 'pending'
}

function readTaskId({ taskId, task_id, id }: Input): string | number | null {
  const given = taskId ?? task_id ?? id
  return typeof given === 'string' || typeof given === 'number' ? given : null
}

/**
 * Reads the task that a tool call creates: an input with a text and without a task id. Returns null for an input with a
 * `prompt`, because such a call starts an agent.
 */
function readCreatedTask(name: string, input: Input): TodoItem | null {
  if (!TASK_TOOL_NAME.test(name) || input.prompt !== undefined || readTaskId(input) !== null) return null
  const subject = input.subject ?? input.title
  const item = readItem(typeof subject === 'string' ? { ...input, content: subject } : input, 'pending')
  return item === null ? null : { text: item.text, status: item.status }
}

/** Returns the id of a created task: the id in the tool's result, or, without one, the number of tasks created so far. */
function readCreatedId({ result }: ToolRun, made: number): string {
  return `task ${/(?:#|"(?:task_?)?id"\s*:\s*"?)(\w+)/i.exec(result)?.[1] ?? made}`
}

/** Applies a tool call that updates tasks, one or a list of them. Returns true if the call changed a task. */
function applyTaskUpdates(todos: Map<string, TodoItem>, name: string, input: Input): boolean {
  if (!TASK_TOOL_NAME.test(name)) return false
  const list: unknown = NAMED_LIST_FIELDS.map((field) => input[field]).find((value) => Array.isArray(value))
  if (!Array.isArray(list)) return applyTaskUpdate(todos, input)
  return list
    .filter(isObject)
    .map((update) => applyTaskUpdate(todos, update))
    .includes(true)
}

function applyTaskUpdate(todos: Map<string, TodoItem>, input: Input): boolean {
  const key = `task ${readTaskId(input)}`
  const before = todos.get(key)
  if (before === undefined) return false
  if (input.status === 'deleted') return todos.delete(key)
  const subject = input.subject ?? input.title ?? input.content
  const text = typeof subject === 'string' ? subject : before.text
  const status = readStatus(input) ?? before.status
  todos.set(key, { text, status })
  return text !== before.text || status !== before.status
}

// The plan.

/**
 * Returns the plan that a tool call submits as a text, or null: the field `plan` of a tool with "plan" in its name, or
 * the text of a tool whose name says that it writes a plan. If the result has the plan as the user approved it, perhaps
 * changed, returns that one. A plan in a file is not read here, since the file has it.
 */
export function readPlanText({
  name,
  input,
  path,
  result = '',
}: Pick<ToolRun, 'name' | 'input' | 'path'> & Partial<Pick<ToolRun, 'result'>>): string | null {
  if (!isObject(input) || path !== null || !/plan/i.test(name)) return null
  const isPlanTool = isTodoOrPlanTool(name)
  const approved = isPlanTool ? readApprovedPlan(result) : null
  if (approved !== null) return approved.text
  const fields = isPlanTool ? PLAN_FIELDS : ['plan']
  const text = fields
    .map((field) => input[field])
    .find((value) => typeof value === 'string' && value.trim() !== '')
  return typeof text === 'string' ? text : null
}
