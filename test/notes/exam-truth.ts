/** What is true at a point of a session, by the rules of docs/notes-exam.md and by nothing else. */

import {
  type ExamCall,
  type ExamLog,
  type ExamResult,
  type Fields,
  type TypedText,
  toFields,
  toText,
} from './exam-records.ts'

export type CommandStatus = 'ok' | 'failed' | 'undecided'

export interface CommandTruth {
  readonly command: string
  readonly status: CommandStatus
}

export interface Truth {
  readonly openTodos: readonly string[]
  /** Texts of items that were on the list at any time and are not open now. */
  readonly closedTodos: readonly string[]
  readonly editedFiles: readonly FileTruth[]
  readonly askedCommands: readonly CommandTruth[]
  readonly allCommands: readonly CommandTruth[]
  /** Null if no command printed a test result. */
  readonly failingTests: readonly string[] | null
  /** `undecided`: the user typed something later of which the log does not show whether it is a prompt. */
  readonly instruction: { readonly text: string | null; readonly isUndecided: boolean }
  readonly corrections: readonly string[]
}

/** One file: its whole path, and how it is written relative to the working directories of its edits and of the start. */
export interface FileTruth {
  readonly path: string
  readonly spellings: readonly string[]
}

export function findTruth({ calls: logged, typed }: ExamLog): Truth {
  const calls = joinContinuations(logged)
  const commands = listCommands(calls)
  const failed = commands.filter(({ status }) => status === 'failed')
  return {
    ...listTodos(calls),
    editedFiles: listEditedFiles(calls),
    askedCommands: [...new Set([...commands.slice(-20), ...failed])],
    allCommands: commands,
    failingTests: listFailingTests(calls),
    instruction: findInstruction(typed),
    corrections: listCorrections(typed),
  }
}

const RUNNING = /^Process running with session ID (\S+)/m

/** Gives a command that was still running the results of the later calls of `write_stdin` for its session. */
function joinContinuations(calls: readonly ExamCall[]): readonly ExamCall[] {
  const joined = [...calls]
  const running = new Map<string, number>()
  calls.forEach(({ name, input, result }, index) => {
    const session = String(input.session_id)
    const owner = name === 'write_stdin' ? running.get(session) : index
    if (owner === undefined) return
    const own = joined[owner]
    if (own !== undefined && owner !== index) {
      running.delete(session)
      const [head = '', ...rest] = result.text.split(/^(?=Output:$)/m)
      const earlier = own.result.text
        .split(/^Output:$/m)
        .slice(1)
        .join('')
      const text = `${head}Output:${earlier}${rest.join('').replace('Output:', '')}`
      joined[owner] = { ...own, result: { ...result, text } }
    }
    const id = RUNNING.exec(firstAndLastLines(result.text))?.[1]
    if (id !== undefined) running.set(id, owner)
  })
  return joined
}

/** Runs of whitespace become one blank. */
export function squeeze(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

export function stripColours(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences of terminals begin with one
  return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '')
}

interface Todo {
  readonly text: string
  readonly status: string
}

function listTodos(calls: readonly ExamCall[]): Pick<Truth, 'openTodos' | 'closedTodos'> {
  let list = new Map<string, Todo>()
  const known = new Set<string>()
  for (const { name, input, result } of calls) {
    if (isError(result)) continue
    if (name === 'TodoWrite' || name === 'update_plan') list = readTodoList(input) ?? list
    if (name === 'TaskCreate') {
      const number = /Task #(\w+) created/.exec(result.text)?.[1]
      if (number !== undefined) list.set(number, { text: squeeze(toText(input.subject)), status: 'pending' })
    }
    if (name === 'TaskUpdate') {
      const number = String(input.taskId ?? '')
      const task = list.get(number)
      const text = squeeze(toText(input.subject)) || task?.text
      if (task !== undefined && text !== undefined)
        list.set(number, { text, status: toText(input.status) || task.status })
    }
    for (const { text } of list.values()) known.add(text)
  }
  const isOpen = ({ status }: Todo) => !['completed', 'cancelled', 'deleted'].includes(status)
  const open = new Set([...list.values()].filter(isOpen).map(({ text }) => text))
  return { openTodos: [...open], closedTodos: [...known].filter((text) => !open.has(text)) }
}

function readTodoList(input: Fields): Map<string, Todo> | null {
  const items = input.todos ?? input.items ?? input.plan
  if (!Array.isArray(items)) return null
  const todos = items.map(toFields).map((item) => ({
    text: squeeze(toText(item.content ?? item.step ?? item.text ?? item.subject)),
    status: toText(item.status),
  }))
  return new Map(todos.filter(({ text }) => text !== '').map((todo, place) => [`item ${place}`, todo]))
}

const EDITING_TOOLS = ['Edit', 'MultiEdit', 'Write', 'NotebookEdit']

function listEditedFiles(calls: readonly ExamCall[]): readonly FileTruth[] {
  const start = calls[0]?.cwd ?? ''
  const files = new Map<string, Set<string>>()
  for (const call of calls) {
    if (isError(call.result)) continue
    for (const named of listEditedPaths(call)) {
      const path = toWholePath(named, call.cwd)
      const spellings = files.get(path) ?? new Set([path])
      for (const cwd of [call.cwd, start]) spellings.add(toRelativePath(path, cwd))
      files.set(path, spellings)
    }
  }
  return [...files].map(([path, spellings]) => ({ path, spellings: [...spellings] }))
}

function listEditedPaths({ name, input }: ExamCall): readonly string[] {
  if (EDITING_TOOLS.includes(name)) {
    const path = toText(input.file_path ?? input.notebook_path ?? input.path)
    return path === '' ? [] : [path]
  }
  const command = toCommand(name, input) ?? ''
  const isPatch = name === 'apply_patch' || /\bapply_patch\b/.test(command)
  if (!isPatch) return []
  const patch = toText(input.input) || toText(input.patch) || toRawCommand(input)
  return [...patch.matchAll(/^\*\*\* (?:Update|Add) File: (.+)$/gm)].map((match) => (match[1] ?? '').trim())
}

/** The path with `/`, from the root where the working directory is known, without `.` and `..`. */
function toWholePath(path: string, cwd: string): string {
  const slashed = path.replaceAll('\\', '/')
  const isWhole = /^(?:\/|[A-Za-z]:\/|~)/.test(slashed) || cwd === ''
  const parts: string[] = []
  for (const part of (isWhole ? slashed : `${toFolder(cwd)}/${slashed}`).split('/')) {
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop()
    else if (part !== '.') parts.push(part)
  }
  return parts.join('/')
}

function toRelativePath(path: string, cwd: string): string {
  const folder = `${toFolder(cwd)}/`
  return cwd !== '' && path.startsWith(folder) ? path.slice(folder.length) : path
}

function toFolder(cwd: string): string {
  return cwd.replaceAll('\\', '/').replace(/\/+$/, '')
}

const COMMAND_TOOLS = ['Bash', 'PowerShell', 'shell', 'exec_command', 'shell_command', 'local_shell']

/** The command of a call with whitespace squeezed, or null if it is no call of a shell. */
function toCommand(name: string, input: Fields): string | null {
  return COMMAND_TOOLS.includes(name) ? squeeze(toRawCommand(input)) || null : null
}

function toRawCommand(input: Fields): string {
  const given = input.command ?? input.cmd
  if (!Array.isArray(given)) return toText(given)
  const words = given.filter((word) => typeof word === 'string')
  return /^(?:.*\/)?bash$/.test(words[0] ?? '') && words[1] === '-lc' ? (words[2] ?? '') : words.join(' ')
}

/** Distinct commands with the status of their last call, in the order of the last calls. */
function listCommands(calls: readonly ExamCall[]): readonly CommandTruth[] {
  const commands = new Map<string, CommandTruth>()
  for (const { name, input, result } of calls) {
    const command = toCommand(name, input)
    if (command === null) continue
    commands.delete(command)
    commands.set(command, { command, status: judgeCommand(input, result) })
  }
  return [...commands.values()]
}

function judgeCommand(input: Fields, result: ExamResult): CommandStatus {
  if (input.run_in_background === true || result.isUnfinished) return 'undecided'
  const ends = firstAndLastLines(result.text)
  const isRefused = /^(?:The user doesn't want to|\[Request interrupted by user)/.test(result.text)
  const isStopped = /\bcommand timed out\b|\btimed out after \d/i.test(ends)
  const isRunning = /^Command (?:running|was manually backgrounded)|^Process running with session ID/m.test(
    ends,
  )
  if (isRefused || isStopped || isRunning || isSilent(result)) return 'undecided'
  return isError(result) ? 'failed' : 'ok'
}

function isError({ text, isError: isMarked }: ExamResult): boolean {
  if (isMarked !== undefined) return isMarked
  if (text.startsWith('apply_patch verification failed')) return true
  const stated = readLinesAbove(text)?.above ?? firstAndLastLines(text)
  const codes = stated.matchAll(/(?:\bexit code:?|\bexited with code|"exit_code":) *(\d+)/gi)
  return [...codes].some((match) => Number(match[1]) !== 0)
}

/** A search without matches ends with a code other than 0 and prints nothing. */
function isSilent(result: ExamResult): boolean {
  return result.isError === undefined && isError(result) && readLinesAbove(result.text)?.output === ''
}

const ABOVE_OUTPUT =
  /^(?:Command|Chunk ID|Wall time|Process|Exit code|Original token count|Total output lines)\b/

/** What a program puts above the output of a command, and the output; null if there is nothing above. */
function readLinesAbove(text: string): { readonly above: string; readonly output: string } | null {
  const lines = text.split('\n')
  const end = lines.indexOf('Output:')
  const above = lines.slice(0, Math.max(0, end))
  if (above.length === 0 || !above.every((line) => ABOVE_OUTPUT.test(line))) return null
  return {
    above: above.join('\n'),
    output: lines
      .slice(end + 1)
      .join('\n')
      .trim(),
  }
}

function firstAndLastLines(text: string): string {
  const lines = stripColours(text).trim().split('\n')
  return lines.length <= 8 ? lines.join('\n') : [...lines.slice(0, 5), ...lines.slice(-3)].join('\n')
}

const TALLY = /\b\d+ (?:passed|failed)\b/
const PRINTED_RESULT = /^\s*(?:ok \d+ -|test result:|--- PASS:|ok\s+\S+\s+(?:\d[\d.]*s|\(cached\)))/m
const FAILURE_MARK = /^\s*(?:FAILED\s|--- FAIL:|not ok \d+ -|test \S.* \.\.\. FAILED|FAIL(?:\s|$))/m

function listFailingTests(calls: readonly ExamCall[]): readonly string[] | null {
  const outputs = calls
    .filter(({ name, input }) => toCommand(name, input) !== null)
    .map(({ result }) => stripColours(result.text))
  const isRun = (text: string) => [TALLY, PRINTED_RESULT, FAILURE_MARK].some((mark) => mark.test(text))
  const newest = outputs.findLast(isRun)
  if (newest === undefined) return null
  const hasTally = TALLY.test(newest)
  const names = newest.split('\n').map((line) => readFailingTest(line, hasTally))
  return [...new Set(names.filter((name) => name !== ''))]
}

/** Linters too begin lines with a cross, so one counts only in a run that tells how many tests passed or failed. */
function readFailingTest(line: string, hasTally: boolean): string {
  const pytest = /^\s*FAILED\s+(\S+::.*?)(?: - .*)?$/.exec(line)?.[1]
  const go = /^\s*--- FAIL:\s+(.*)$/.exec(line)?.[1]
  const tap = /^\s*not ok \d+ - (.*)$/.exec(line)?.[1]
  const rust = /^\s*test (\S.*) \.\.\. FAILED\s*$/.exec(line)?.[1]
  const file = /^\s*FAIL\s+(.*)$/.exec(line)?.[1]
  const cross = hasTally ? /^\s*[✕✗×]\s+(.*)$/.exec(line)?.[1] : undefined
  return squeeze(pytest ?? withoutTime(go) ?? tap ?? rust ?? withoutTime(file) ?? withoutTime(cross) ?? '')
}

function withoutTime(name: string | undefined): string | undefined {
  return name?.trim().replace(/\s*[([]?\s*\d+(?:\.\d+)?\s*(?:ms|s|m)\s*[)\]]?$/, '')
}

function findInstruction(typed: readonly TypedText[]): Truth['instruction'] {
  const newest = typed.findLast(({ kind }) => kind === 'prompt' || kind === 'maybe')
  const prompt = typed.findLast(({ kind }) => kind === 'prompt')
  return { text: prompt?.text ?? null, isUndecided: newest?.kind === 'maybe' }
}

function listCorrections(typed: readonly TypedText[]): readonly string[] {
  const corrections = new Set<string>()
  let isStopped = false
  for (const { kind, text } of typed) {
    if (kind === 'refusal' || (kind === 'prompt' && isStopped)) corrections.add(text)
    isStopped = kind === 'interruption' || (isStopped && kind === 'maybe')
  }
  return [...corrections]
}
