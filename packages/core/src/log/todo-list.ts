/** The todo list as it last stood, from lists written whole and from tasks made and changed one by one. */
import { isObject } from './json.ts'
import type { ToolRun } from './tool-calls.ts'

export interface TodoItem {
  readonly text: string
  readonly status: 'pending' | 'in_progress' | 'completed'
}

const TEXTS = ['content', 'subject', 'step', 'title', 'text']

/** In the order they were written down. */
export function todosOf(runs: readonly ToolRun[], clean: (text: string) => string): readonly TodoItem[] {
  let todos = new Map<string, TodoItem>()
  let made = 0
  for (const run of runs) {
    if (run.failed || !isObject(run.input)) continue
    const list = listIn(run.input)
    if (list !== null) todos = new Map(list.map((item, index) => [`list ${index}`, item]))
    else if (typeof run.input.subject === 'string' && run.input.taskId === undefined) {
      made += 1
      todos.set(taskId(run, made), { text: run.input.subject, status: 'pending' })
    } else change(todos, run.input)
  }
  return [...todos.values()].map((item) => ({ ...item, text: clean(item.text) }))
}

/** Where the list was last written or changed; -1 where it never was. */
export function todosPlace(runs: readonly ToolRun[]): number {
  const run = runs.findLast(
    ({ input, failed }) =>
      !failed &&
      isObject(input) &&
      (listIn(input) !== null || typeof input.subject === 'string' || input.taskId !== undefined),
  )
  return run?.place ?? -1
}

export function isOpen({ status }: TodoItem): boolean {
  return status !== 'completed'
}

/** A field that is a list of things with a text and a status. */
function listIn(input: Readonly<Record<string, unknown>>): readonly TodoItem[] | null {
  for (const value of Object.values(input)) {
    if (!Array.isArray(value)) continue
    const items = value.map(itemOf)
    if (items.length > 0 && items.every((item) => item !== null)) return items
  }
  return Array.isArray(input.todos) && input.todos.length === 0 ? [] : null
}

function itemOf(value: unknown): TodoItem | null {
  if (!isObject(value) || typeof value.status !== 'string') return null
  const text = TEXTS.map((name) => value[name]).find((given) => typeof given === 'string')
  return typeof text === 'string' ? { text, status: statusOf(value.status) } : null
}

function statusOf(given: string): TodoItem['status'] {
  if (/^(?:completed?|done|cancelled|finished)$/i.test(given)) return 'completed'
  return /progress|active|doing/i.test(given) ? 'in_progress' : 'pending'
}

/** The number the tool gave it, else its turn. */
function taskId(run: ToolRun, made: number): string {
  return `task ${/#(\w+)/.exec(run.result)?.[1] ?? made}`
}

function change(todos: Map<string, TodoItem>, input: Readonly<Record<string, unknown>>): void {
  if (typeof input.taskId !== 'string' && typeof input.taskId !== 'number') return
  const key = `task ${input.taskId}`
  const before = todos.get(key)
  if (before === undefined) return
  if (input.status === 'deleted') todos.delete(key)
  else {
    const status = typeof input.status === 'string' ? statusOf(input.status) : before.status
    todos.set(key, { text: typeof input.subject === 'string' ? input.subject : before.text, status })
  }
}
