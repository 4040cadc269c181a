/** Tasks that are done and stand among those that are pending: a summary that says so has work done twice. */
import { isOpen, type TodoItem } from './todo-state.ts'

const PENDING = /^[ \t#*]*7[.)][ \t*]*[^\n]*(?:pending|task)[^\n]*$/gim
const NEXT = /^[ \t#*]*[89][.)][ \t*]*\S/m
const SAID_DONE = /\b(?:done|completed?|finished|fixed|resolved)\b|✅|\[x\]/i

export interface Sorted {
  readonly text: string
  /** Texts of the tasks whose lines went. */
  readonly done: readonly string[]
}

/** The lines of section 7 (the last of that name: messages may quote one) that name a completed task and do not say so are taken out of it. */
export function withoutSettledTasks(text: string, todos: readonly TodoItem[]): Sorted {
  const head = [...text.matchAll(PENDING)].at(-1)
  const open = todos.filter(isOpen).map(({ text: task }) => plain(task))
  const settled = todos.filter((todo) => !isOpen(todo) && !open.includes(plain(todo.text)))
  if (head === undefined || settled.length === 0) return { text, done: [] }
  const from = head.index + head[0].length
  const length = NEXT.exec(text.slice(from))?.index ?? text.length - from
  const done = new Set<string>()
  const lines = text.slice(from, from + length).split('\n')
  const kept = lines.filter((line) => {
    const task = settled.find(({ text: given }) => plain(line).includes(plain(given)))
    if (task === undefined || SAID_DONE.test(line)) return true
    if (open.some((other) => plain(line).includes(other))) return true
    done.add(task.text)
    return false
  })
  return { text: text.slice(0, from) + kept.join('\n') + text.slice(from + length), done: [...done] }
}

function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[\s*_`]+/g, ' ')
    .trim()
}
