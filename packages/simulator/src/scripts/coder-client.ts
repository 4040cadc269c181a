/**
 * Lets the coder work with the tools of a real client, such as Claude Code, opencode or pi. Translates the coder's
 * calls into calls of the tools that the request declares, in a folder of its own, and repeats what a failed call left
 * undone.
 */
import type { Block, JsonObject, MessageParam } from '../protocol/messages-request.ts'
import { type CallIdParts, parseCallId } from './coder-position.ts'
import type { SimulatedRepository } from './coder-repository.ts'
import { type CoderStep, NOTES_PATH, type StepCall } from './coder-steps.ts'
import {
  createToolInput,
  findToolsByRole,
  type ToolInputValues,
  type ToolRole,
  type ToolsByRole,
} from './declared-tools.ts'
import {
  listMessageTexts,
  listToolCalls,
  listToolResults,
  type ScriptRequest,
  type ToolResult,
} from './script.ts'

/** The folder for all files of the coder, in the client's working directory. */
const CODER_FOLDER = 'tidemark-coder'

export interface CoderClient {
  readonly tools: ToolsByRole
  /** Path of the coder's folder: absolute if the request names the working directory. */
  readonly folder: string
}

/** Finds the tools and the folder of a client. Returns null if the client declares no tool that can write a file. */
export function findCoderClient(request: ScriptRequest): CoderClient | null {
  const tools = findToolsByRole(request.tools)
  if (tools.write === undefined && tools.shell === undefined) return null
  const directory = findWorkingDirectory(request)
  return { tools, folder: directory === null ? CODER_FOLDER : `${directory}/${CODER_FOLDER}` }
}

const DIRECTORY_PATTERN =
  /\b(?:working directory|cwd)(?: is)?[\s>:=*`"']{1,10}((?:\/|[a-z]:[\\/])[^\n<>"`]*)/i

/** Finds the working directory in the system prompt, in system messages, or in the first message of the user. */
function findWorkingDirectory({ system, messages }: ScriptRequest): string | null {
  const texts = [
    ...system.map(({ text }) => String(text)),
    ...messages.filter(({ role }) => role === 'system').flatMap(listMessageTexts),
    ...messages.slice(0, 1).flatMap(listMessageTexts),
  ]
  for (const text of texts) {
    const [, directory] = DIRECTORY_PATTERN.exec(text) ?? []
    if (directory !== undefined) return directory.trim().replace(/[\\/]+$/, '')
  }
  return null
}

// Translation of calls.

interface ClientCall {
  readonly name: string
  readonly input: JsonObject
}

/**
 * Translates a call of the coder for a client. If the client lacks the tool, a call becomes a shell command, and an
 * edit becomes a write of the whole file. Returns null if that is impossible, too.
 *
 * @param after The files after the step of the call.
 */
function toClientCall(call: StepCall, client: CoderClient, after: SimulatedRepository): ClientCall | null {
  const { folder } = client
  const [path, command] = [String(call.input.file_path), String(call.input.command)]
  const values: ToolInputValues = { path: `${folder}/${path}` }
  switch (call.name) {
    case 'Read':
      return useTool('read', values, client) ?? useShell(`cat ${path}`, client)
    case 'Write': {
      const content = String(call.input.content)
      return (
        useTool('write', { ...values, content }, client) ??
        useShellToWrite(`${folder}/${path}`, content, client)
      )
    }
    case 'Edit': {
      const [oldText, newText] = [String(call.input.old_string), String(call.input.new_string)]
      const edit = { ...values, oldText, newText, edits: [{ oldText, newText }] }
      return useTool('edit', edit, client) ?? toClientCall(writeWholeFile(path, after), client, after)
    }
    case 'Grep': {
      const [pattern, within] = [String(call.input.pattern), String(call.input.path)]
      const search = useTool('search', { pattern, path: `${folder}/${within}` }, client)
      return search ?? useShell(`grep -rnE '${pattern}' ${within}`, client)
    }
    case 'Bash':
      return useShell(command, client)
    default:
      return (
        useTool('todos', { todos: call.input.todos as readonly ToolInputValues[] }, client) ??
        useShell('ls -R .', client)
      )
  }
}

/**
 * Returns a call that writes the notes again, for a step whose calls the client cannot run: a step without calls would
 * end the turn. Null if the client cannot write files either.
 */
export function createIdleCall(client: CoderClient, repository: SimulatedRepository): ClientCall | null {
  return toClientCall(writeWholeFile(NOTES_PATH, repository), client, repository)
}

function useTool(role: ToolRole, values: ToolInputValues, { tools }: CoderClient): ClientCall | null {
  const tool = tools[role]
  return tool === undefined ? null : { name: tool.name, input: createToolInput(tool.schema, values) }
}

/** Runs a command in the coder's folder, in a subshell so that the client's own directory does not change. */
function useShell(command: string, client: CoderClient): ClientCall | null {
  const values = {
    command: `(cd ${quoteForShell(client.folder)} && ${command})`,
    description: 'Work on the files of the coder',
  }
  return useTool('shell', values, client)
}

function useShellToWrite(path: string, content: string, client: CoderClient): ClientCall | null {
  const file = quoteForShell(path)
  const folder = quoteForShell(path.replace(/\/[^/]*$/, ''))
  const text = content.endsWith('\n') ? content : `${content}\n`
  const command = `mkdir -p ${folder} && cat > ${file} <<'END_OF_FILE'\n${text}END_OF_FILE`
  return useTool('shell', { command, description: 'Write a file of the coder' }, client)
}

function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function writeWholeFile(path: string, files: SimulatedRepository): StepCall {
  return { name: 'Write', input: { file_path: path, content: files.get(path) ?? '' } }
}

// Repairs. A call that failed on a file (not read before, changed meanwhile, deleted) is repaired with two responses:
// the first reads the file; the second repeats the edit, or writes the whole file if the expected text is missing. Call
// ids tell which call they repair, so no state is needed. If a response broke off, its missing calls are made now.

interface RepairCall {
  readonly place: CallIdParts
  readonly call: StepCall
}

/**
 * Lists the calls that the step `index` still needs: those that a broken-off response lacks, and the next repair of
 * each file whose last attempt failed. A failed repair is not repaired again, so that the coder continues; an
 * interrupted repair is repeated.
 *
 * `isCompacted`: a compaction may have removed the results of the step. If its calls are gone too, all its changes are
 * checked.
 */
export function listRemainingCalls(
  messages: readonly MessageParam[],
  { index, isCompacted }: { readonly index: number; readonly isCompacted: boolean },
  stepAt: (index: number) => CoderStep,
): readonly RepairCall[] {
  const attempts = listAttempts(messages, index)
  if (isCompacted && attempts.length === 0) return listUnseenChanges(index, stepAt)
  return stepAt(index).calls.flatMap((call, number) => {
    const made = attempts.filter(({ place }) => place.number === number)
    if (made.length === 0)
      return isCompacted ? [] : [{ place: { index, number, repair: null, file: 0 }, call }]
    return listFiles(call).flatMap((_, file) => {
      const last = made.findLast(({ place }) => place.repair === null || place.file === file)
      return last === undefined ? [] : listNextRepairs({ ...last, file }, call, stepAt(index + 1).repository)
    })
  })
}

/** A call of a step that was made, and its result. */
interface Attempt {
  readonly place: CallIdParts
  readonly result: ToolResult | undefined
}

function listAttempts(messages: readonly MessageParam[], index: number): readonly Attempt[] {
  const calls = messages.flatMap(listToolCalls).flatMap(({ id }) => {
    const place = parseCallId(id)
    return place?.index === index ? [{ id, place }] : []
  })
  const ids = new Set(calls.map(({ id }) => id))
  const results = messages.flatMap((message) => listToolResults(message)).filter(({ id }) => ids.has(id))
  return calls.map(({ id, place }) => ({ place, result: results.find((each) => each.id === id) }))
}

/** Returns the next repair of one file of a call, given the last attempt. */
function listNextRepairs(
  { place, result, file }: Attempt & { readonly file: number },
  call: StepCall,
  after: SimulatedRepository,
): readonly RepairCall[] {
  if (result === undefined) return []
  if (place.repair === 'look') return listSecondRepairs(place, call, result, after)
  const hasFailed = result.isError || (call.checks !== undefined && /^FAIL /m.test(result.text))
  const isInterrupted = result.isError && /\binterrupted\b/.test(result.text)
  if (!isInterrupted && (place.repair === 'again' || !hasFailed)) return []
  return listFirstRepairs(place, call).filter((repair) => repair.place.file === file)
}

function listUnseenChanges(index: number, stepAt: (index: number) => CoderStep): readonly RepairCall[] {
  return stepAt(index).calls.flatMap((call, number) =>
    call.name === 'Read' ? [] : listFirstRepairs({ index, number, repair: null, file: 0 }, call),
  )
}

function listFirstRepairs(place: CallIdParts, call: StepCall): readonly RepairCall[] {
  return listFiles(call).map((file_path, file) => ({
    place: { ...place, repair: 'look', file },
    call: { name: 'Read', input: { file_path } },
  }))
}

function listSecondRepairs(
  place: CallIdParts,
  call: StepCall,
  { text, isError }: { readonly text: string; readonly isError: boolean },
  after: SimulatedRepository,
): readonly RepairCall[] {
  const path = listFiles(call)[place.file]
  const [oldText, newText] = [String(call.input.old_string), String(call.input.new_string)]
  const isDone = call.name === 'Read' || (call.name === 'Edit' && hasLines(text, newText))
  if (path === undefined || (isDone && !isError)) return []
  const isEditable = call.name === 'Edit' && !isError && hasLines(text, oldText)
  return [{ place: { ...place, repair: 'again' }, call: isEditable ? call : writeWholeFile(path, after) }]
}

/** Checks whether the printed text of a file contains these lines. Each printed line may begin with its number. */
function hasLines(printed: string, lines: string): boolean {
  const rows = printed.split('\n')
  return lines.split('\n').every((line) => rows.some((row) => row.trimEnd().endsWith(line)))
}

/** Lists the files that a call reads, changes or checks. */
function listFiles({ name, input, checks }: StepCall): readonly string[] {
  if (checks !== undefined) return checks
  return name === 'Read' || name === 'Edit' || name === 'Write' ? [String(input.file_path)] : []
}

/** Returns the `tool_use` blocks of calls. Calls that the client cannot run are left out. `after`: the files after the step. */
export function createClientCalls(
  calls: readonly RepairCall[],
  client: CoderClient,
  {
    after,
    formatId,
  }: { readonly after: SimulatedRepository; readonly formatId: (place: CallIdParts) => string },
): readonly Block[] {
  return calls.flatMap(({ place, call }) => {
    const translated = toClientCall(call, client, after)
    return translated === null ? [] : [{ type: 'tool_use', id: formatId(place), ...translated }]
  })
}
