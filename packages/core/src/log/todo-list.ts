/**
 * The todo list as it last stood. The one reader of lists written whole (`TodoWrite`, Codex's `update_plan`) and of
 * tasks created and updated one by one (`TaskCreate`, `TaskUpdate`), for the summary and the todos source.
 */
import { isObject } from './json.ts'
import { hasSucceeded, type ToolRun } from './tool-calls.ts'

export interface TodoItem {
  readonly text: string
  /** As the tool was given it; `isOpen` and `isInProgress` read it. */
  readonly status: string
}

export interface TodoList {
  /** In the order they were written down. */
  readonly items: readonly TodoItem[]
  /** The newest call that changed the list, its place in the history, and whether it wrote the list whole. */
  readonly callId: string
  readonly place: number
  readonly isWhole: boolean
}

/** Tools whose input is a todo list whatever it looks like: the default of `rehydrate.todoTools`. */
export const TODO_TOOLS: readonly string[] = ['TodoWrite']

const LISTS = ['todos', 'plan', 'tasks']
const TEXTS = ['content', 'subject', 'step', 'title', 'text', 'description']
const LIST_TOOL = /todo|task|plan/i
/** A tracker behind an MCP server keeps other people's tasks. */
const TASK_TOOL = /^(?!mcp__).*(?:todo|task)/i

type Input = Readonly<Record<string, unknown>>

/** Null where no call ever wrote one. Calls that failed or have no result yet do not count. */
export function readTodos(
  runs: readonly ToolRun[],
  todoTools: readonly string[] = TODO_TOOLS,
): TodoList | null {
  let todos = new Map<string, TodoItem>()
  let made = 0
  let newest: Omit<TodoList, 'items'> | null = null
  for (const run of runs) {
    if (!hasSucceeded(run) || !isObject(run.input)) continue
    const list = listIn(run.name, run.input, todoTools)
    const task = list === null ? createdTask(run.name, run.input) : null
    if (list !== null) todos = new Map(list.map((item, index) => [`list ${index}`, item]))
    else if (task !== null) {
      made += 1
      todos.set(createdId(run, made), task)
    } else if (!applyUpdate(todos, run.name, run.input)) continue
    newest = { callId: run.id, place: run.place, isWhole: list !== null }
  }
  return newest === null ? null : { ...newest, items: [...todos.values()] }
}

export function isOpen({ status }: TodoItem): boolean {
  return !/^(?:completed?|done|cancell?ed|finished)$/i.test(status)
}

export function isInProgress(item: TodoItem): boolean {
  return isOpen(item) && /progress|active|doing/i.test(item.status)
}

/** Items that each have a text and a status. In a tool known for its lists also plain texts, in any field. */
function listIn(name: string, input: Input, todoTools: readonly string[]): readonly TodoItem[] | null {
  const isKnown = todoTools.includes(name)
  const lists = isKnown ? Object.values(input) : LISTS.map((field) => input[field])
  const list: unknown = lists.find((value) => Array.isArray(value))
  if (!Array.isArray(list)) return null
  const items = list.flatMap((value) => itemIn(value, isKnown ? 'pending' : null) ?? [])
  if (isKnown || (list.length === 0 && LIST_TOOL.test(name))) return items
  return list.length > 0 && items.length === list.length ? items : null
}

/** `status`: of an item that gives none; null where each must give one. */
function itemIn(value: unknown, status: string | null): TodoItem | null {
  if (typeof value === 'string') return status === null ? null : { text: value, status }
  if (!isObject(value)) return null
  const text = TEXTS.map((name) => value[name]).find((given) => typeof given === 'string')
  const given = typeof value.status === 'string' ? value.status : value.done === true ? 'completed' : status
  return typeof text === 'string' && given !== null ? { text, status: given } : null
}

function idIn({ taskId, task_id, id }: Input): string | number | null {
  const given = taskId ?? task_id ?? id
  return typeof given === 'string' || typeof given === 'number' ? given : null
}

/** A text and no id. A tool that takes a prompt starts an agent. */
function createdTask(name: string, input: Input): TodoItem | null {
  if (!TASK_TOOL.test(name) || input.prompt !== undefined || idIn(input) !== null) return null
  const subject = input.subject ?? input.title
  return itemIn(typeof subject === 'string' ? { ...input, content: subject } : input, 'pending')
}

/** The id that the tool's result gives, else the task's number. */
function createdId({ result }: ToolRun, made: number): string {
  return `task ${/(?:#|"(?:task_?)?id"\s*:\s*"?)(\w+)/i.exec(result)?.[1] ?? made}`
}

/** Whether the call changed a task of the list. */
function applyUpdate(todos: Map<string, TodoItem>, name: string, input: Input): boolean {
  const key = `task ${idIn(input)}`
  const before = TASK_TOOL.test(name) ? todos.get(key) : undefined
  if (before === undefined) return false
  if (input.status === 'deleted') return todos.delete(key)
  const subject = input.subject ?? input.title
  const text = typeof subject === 'string' ? subject : before.text
  const status = typeof input.status === 'string' ? input.status : before.status
  todos.set(key, { text, status })
  return text !== before.text || status !== before.status
}
