/**
 * Reads the current todo list from tool calls. Some tools write the whole list (`TodoWrite`, Codex's `update_plan`);
 * others create and update single tasks (`TaskCreate`, `TaskUpdate`).
 */
import { isObject } from './json.ts'
import { hasToolRunSucceeded, type ToolRun } from './tool-calls.ts'

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
  readonly callIndex: number
  readonly isWhole: boolean
}

/** Names of tools whose input is always a whole todo list: the default of the policy field `rehydrate.todoTools`. */
export const TODO_TOOLS: readonly string[] = ['TodoWrite']

const LIST_FIELDS = ['todos', 'plan', 'tasks']
const TEXT_FIELDS = ['content', 'subject', 'step', 'title', 'text', 'description']
const LIST_TOOL_NAME = /todo|task|plan/i
/**
 * Matches names of tools that create or update single tasks. MCP tools are excluded, because the tasks of an issue
 * tracker are not the model's todo list.
 */
const TASK_TOOL_NAME = /^(?!mcp__).*(?:todo|task)/i

type Input = Readonly<Record<string, unknown>>

/** Returns the current todo list, or null if no tool call wrote one. Calls that failed or have no result yet are ignored. */
export function readTodoList(
  runs: readonly ToolRun[],
  todoTools: readonly string[] = TODO_TOOLS,
): TodoList | null {
  let todos = new Map<string, TodoItem>()
  let made = 0
  let newest: Omit<TodoList, 'items'> | null = null
  for (const run of runs) {
    if (!hasToolRunSucceeded(run) || !isObject(run.input)) continue
    const list = readList(run.name, run.input, todoTools)
    const task = list === null ? readCreatedTask(run.name, run.input) : null
    if (list !== null) todos = new Map(list.map((item, index) => [`list ${index}`, item]))
    else if (task !== null) {
      made += 1
      todos.set(readCreatedId(run, made), task)
    } else if (!applyTaskUpdate(todos, run.name, run.input)) continue
    newest = { callId: run.id, callIndex: run.callIndex, isWhole: list !== null }
  }
  return newest === null ? null : { ...newest, items: [...todos.values()] }
}

export function isOpenTodo({ status }: TodoItem): boolean {
  return !/^(?:completed?|done|cancell?ed|finished)$/i.test(status)
}

export function isTodoInProgress(item: TodoItem): boolean {
  return isOpenTodo(item) && /progress|active|doing/i.test(item.status)
}

/**
 * Reads a whole todo list: items with text and status. For a tool named in `todoTools`, a list of plain strings in any
 * input field is accepted too.
 */
function readList(name: string, input: Input, todoTools: readonly string[]): readonly TodoItem[] | null {
  const isKnown = todoTools.includes(name)
  const lists = isKnown ? Object.values(input) : LIST_FIELDS.map((field) => input[field])
  const list: unknown = lists.find((value) => Array.isArray(value))
  if (!Array.isArray(list)) return null
  const items = list.flatMap((value) => readItem(value, isKnown ? 'pending' : null) ?? [])
  if (isKnown || (list.length === 0 && LIST_TOOL_NAME.test(name))) return items
  return list.length > 0 && items.length === list.length ? items : null
}

/**
 * Reads one todo item; null if it is not one. `status` is the default status; if it is null, the item must state its
 * own.
 */
function readItem(value: unknown, status: string | null): TodoItem | null {
  if (typeof value === 'string') return status === null ? null : { text: value, status }
  if (!isObject(value)) return null
  const text = TEXT_FIELDS.map((name) => value[name]).find((given) => typeof given === 'string')
  const given = typeof value.status === 'string' ? value.status : value.done === true ? 'completed' : status
  return typeof text === 'string' && given !== null ? { text, status: given } : null
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
  return readItem(typeof subject === 'string' ? { ...input, content: subject } : input, 'pending')
}

/** Returns the id of a created task: the id in the tool's result, or, without one, the number of tasks created so far. */
function readCreatedId({ result }: ToolRun, made: number): string {
  return `task ${/(?:#|"(?:task_?)?id"\s*:\s*"?)(\w+)/i.exec(result)?.[1] ?? made}`
}

/** Applies a tool call that updates one task. Returns true if the call changed a task. */
function applyTaskUpdate(todos: Map<string, TodoItem>, name: string, input: Input): boolean {
  const key = `task ${readTaskId(input)}`
  const before = TASK_TOOL_NAME.test(name) ? todos.get(key) : undefined
  if (before === undefined) return false
  if (input.status === 'deleted') return todos.delete(key)
  const subject = input.subject ?? input.title
  const text = typeof subject === 'string' ? subject : before.text
  const status = typeof input.status === 'string' ? input.status : before.status
  todos.set(key, { text, status })
  return text !== before.text || status !== before.status
}
