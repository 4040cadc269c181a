/** The tools Bash, BashOutput and KillShell. */
import { randomUUID } from 'node:crypto'
import { constants, mkdir, open, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { formatInteger } from '@tidemark/terminal/render/format-numbers'
import type { ToolOutput } from 'tidemark'
import type { ProcessEnd } from 'tidemark/tools'
import type { ConfinedRun, PreventedActions, Sandbox } from '../sandbox/sandbox.ts'
import { createOutputBuffer, MAX_OUTPUT_CHARACTERS } from './shell-output.ts'
import { type BackgroundShell, type ShellProcess, startShellCommand } from './shell-process.ts'
import { createLineFilter } from './time-limited-search.ts'
import { isPathWithin, resolveRealPath } from './tool-access.ts'
import { type AgentTool, type AgentToolContext, defineTool, ToolError } from './tool-definition.ts'
import type { ToolEnvironment } from './tool-environment.ts'

interface BashInput {
  readonly command: string
  readonly timeout?: number
  readonly description?: string
  readonly run_in_background?: boolean
  readonly outside?: boolean
}

const DEFAULT_TIMEOUT_MS = 120_000
const MAX_TIMEOUT_MS = 600_000

export function createBashTools(environment: ToolEnvironment): Readonly<Record<string, AgentTool>> {
  const folder = createShellFolder(environment)
  return {
    Bash: createBashTool(environment, folder),
    BashOutput: createBashOutputTool(environment),
    KillShell: createKillShellTool(environment),
  }
}

function createBashTool(environment: ToolEnvironment, folder: ShellFolder): AgentTool {
  return defineTool<BashInput>({
    description: `Runs a shell command. Each call starts a new shell in the directory where the last command ended, so cd carries over; variables and functions do not. Standard input is empty: commands cannot ask questions. Output and errors come together, in order; over ${formatInteger(MAX_OUTPUT_CHARACTERS)} characters you see the beginning and the end, and the whole is in a file that you can read. The exit code is stated unless it is 0. A command that takes too long is ended with all its processes. For files, prefer Read, Write, Edit, Grep and Glob.${environment.sandbox === undefined ? '' : describeSandbox(environment.sandbox)}`,
    fields: {
      command: { type: 'string', description: 'The command.' },
      timeout: {
        type: 'number',
        description: `Milliseconds until the command is ended. Default ${DEFAULT_TIMEOUT_MS}, at most ${MAX_TIMEOUT_MS}. Does not apply in the background.`,
      },
      description: { type: 'string', description: 'What the command does, in five to ten words.' },
      run_in_background: {
        type: 'boolean',
        description:
          'Return at once with an id while the command runs on. BashOutput reads its output, KillShell ends it.',
      },
      ...(environment.sandbox === undefined
        ? {}
        : { outside: { type: 'boolean', description: 'Run outside the sandbox. The user is asked.' } }),
    },
    required: ['command'],
    run: async (input, context) => {
      const started = await startCommand(input, { environment, folder, context })
      return input.run_in_background === true
        ? runInBackground(input, started, environment)
        : await runToEnd(input, started, { folder, context })
    },
  })
}

/** Returns the end of the tool's description: what sandboxed commands can do. */
function describeSandbox({ hasNetwork, listedHosts }: Sandbox): string {
  const closed =
    listedHosts.length === 0
      ? ' there is no network,'
      : ` the network is ${listedHosts.join(', ')}, by HTTP and HTTPS through the proxy in HTTP_PROXY,`
  const network = hasNetwork ? '' : closed
  return ` Commands run in a sandbox without questions:${network} only the working directory and /tmp can be written, and settings of Git, editors and agents in it cannot. Processes that a command leaves running end with it, unless it runs in the background. If a command fails for that reason, call again with outside: true.`
}

interface StartedCommand {
  readonly process: ShellProcess
  /** Null if the command is not confined. */
  readonly confined: ConfinedRun | null
  readonly output: BackgroundShell['output']
  readonly cwdFile: string
}

async function startCommand(
  { command, run_in_background, outside }: BashInput,
  tools: {
    readonly environment: ToolEnvironment
    readonly folder: ShellFolder
    readonly context: AgentToolContext
  },
): Promise<StartedCommand> {
  const { env, spillFolder, shells, now, sandbox, hideKey } = tools.environment
  if (command.trim() === '') throw new ToolError('command is empty.')
  await mkdir(spillFolder, { recursive: true, mode: 0o700 })
  const id = randomUUID()
  const confined = sandbox === undefined || outside === true ? null : await sandbox.enter()
  const cwdFile = join(confined === null ? spillFolder : (sandbox?.tempFolder ?? spillFolder), `cwd-${id}`)
  const output = createOutputBuffer(
    join(spillFolder, `bash-output-${id}.txt`),
    MAX_OUTPUT_CHARACTERS,
    hideKey,
  )
  const report = run_in_background === true ? null : createProgressReporter(tools.context, now)
  const process = startShellCommand({
    command,
    cwd: await tools.folder.findStart(),
    env,
    cwdFile,
    ...(confined === null ? {} : { wrap: confined.wrap }),
    onOutput(text) {
      output.add(text)
      report?.(text)
    },
  })
  shells.track(process)
  return { process, output, cwdFile, confined }
}

const PROGRESS_INTERVAL_MS = 500
const MAX_PROGRESS_CHARACTERS = 2_000

/** Returns a function that reports new complete lines of output, at most twice a second. */
function createProgressReporter({ progress }: AgentToolContext, now: () => number): (text: string) => void {
  let pending = ''
  let reportedAt = Number.NEGATIVE_INFINITY
  return (text) => {
    if (progress === undefined) return
    pending = (pending + text).slice(-MAX_PROGRESS_CHARACTERS)
    const end = pending.lastIndexOf('\n') + 1
    if (end === 0 || now() - reportedAt < PROGRESS_INTERVAL_MS) return
    reportedAt = now()
    progress(pending.slice(0, end))
    pending = pending.slice(end)
  }
}

function runInBackground(
  { command }: BashInput,
  { process, output, cwdFile, confined }: StartedCommand,
  { shells }: ToolEnvironment,
): ToolOutput {
  let end: ProcessEnd | null = null
  const recordEnd = (ended: ProcessEnd): void => {
    end = ended
    void rm(cwdFile, { force: true })
    void confined?.leave().then((report) => output.add(describeReport(report)))
  }
  process.ended.then(recordEnd, (error: Error) => {
    output.add(error.message)
    recordEnd({ code: null, signal: null, hasRunningChildren: false })
  })
  const id = shells.add({ command, output, process, end: () => end })
  return `The command runs in the background with the id ${id}. BashOutput reads its output; KillShell ends it.`
}

async function runToEnd(
  input: BashInput,
  { process, output, cwdFile, confined }: StartedCommand,
  { folder, context }: { readonly folder: ShellFolder; readonly context: AgentToolContext },
): Promise<ToolOutput> {
  const timeoutMs = Math.min(MAX_TIMEOUT_MS, Math.max(1, input.timeout ?? DEFAULT_TIMEOUT_MS))
  try {
    const stopped = await stopWhenOver(process, timeoutMs, context.signal)
    const end = stopped === null ? await process.ended : null
    const note = await folder.recordEnd(cwdFile)
    const inside = confined === null ? '' : await leaveSandbox(confined, process, end)
    return renderEnd({ end, stopped, text: output.take().trimEnd(), note, inside })
  } finally {
    output.close()
    await rm(cwdFile, { force: true })
  }
}

/** Ends the sandbox of a command. Returns what the model must know about it, as lines. */
async function leaveSandbox(
  confined: ConfinedRun,
  process: ShellProcess,
  end: ProcessEnd | null,
): Promise<string> {
  // Processes left by the command end with the sandbox. Until then they could create guarded files, so this waits for them.
  for (let waited = 0; waited < LEFT_MS && process.isAlive(); waited += LEFT_POLL_MS)
    await sleep(LEFT_POLL_MS)
  if (process.isAlive()) await process.stop()
  const report = describeReport(await confined.leave())
  return `${report}${end !== null && end.code !== 0 ? `\n${MAY_BE_SANDBOX}` : ''}`
}

/** How long processes that a command has left may take to end with the sandbox before they are stopped. */
const LEFT_MS = 40
const LEFT_POLL_MS = 2
const MAY_BE_SANDBOX =
  '[The command ran in the sandbox. If it failed for lack of network or of write access, call again with outside: true.]'

/** Describes what the sandbox prevented, as lines. */
function describeReport({ moved, refusals }: PreventedActions): string {
  return [
    ...moved.map(
      (path) =>
        `The sandbox does not let commands create ${path}; it was renamed to ${path}.from-sandbox. With outside: true the user is asked.`,
    ),
    ...refusals.map(
      (why) => `The sandbox refused a connection: ${why}. With outside: true the user is asked.`,
    ),
  ]
    .map((line) => `\n[${line}]`)
    .join('')
}

/** How long the last output of a stopped command is awaited. */
const LAST_OUTPUT_MS = 1_500

/** Waits for the end of a command. If it takes too long or is aborted, stops it and returns why; otherwise returns null. */
async function stopWhenOver(
  process: ShellProcess,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | null> {
  let over: (why: string) => void = () => undefined
  const isOver = new Promise<string>((resolve) => {
    over = resolve
  })
  const abort = (): void =>
    over('The command was ended with all its processes, because the turn was aborted.')
  const seconds = formatInteger(timeoutMs / 1_000)
  const timer = setTimeout(
    () => over(`The command took longer than ${seconds} s and was ended with all its processes.`),
    timeoutMs,
  )
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    const why = await Promise.race([process.ended.then(() => null), isOver])
    if (why === null) return null
    await process.stop()
    // The last output is still read, but a process that survives even SIGKILL is not awaited.
    await Promise.race([process.ended, sleep(LAST_OUTPUT_MS)])
    return why
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

interface CommandReport {
  readonly end: ProcessEnd | null
  /** Why the command was ended; null if it ended by itself. */
  readonly stopped: string | null
  readonly text: string
  readonly note: string | null
  /** Lines that the sandbox adds to the result. */
  readonly inside: string
}

/**
 * Writes the result of a command. An exit code other than 0 without output, such as that of a search without matches, is reported but is
 * not an error.
 */
function renderEnd({ end, stopped, text, note, inside }: CommandReport): ToolOutput {
  const failure = stopped ?? describeFailure(end)
  const children =
    end?.hasRunningChildren === true ? ['[A process started by the command is still running.]'] : []
  const lines = [...children, ...(note === null ? [] : [`[${note}]`])].map((line) => `\n${line}`).join('')
  const notes = `${lines}${inside}`
  if (failure === null) return `${text === '' ? '(no output)' : text}${notes}`
  const content = `${failure}\nOutput:${text === '' ? '' : `\n${text}`}${notes}`
  return { content, isError: stopped !== null || text !== '' }
}

function describeFailure(end: ProcessEnd | null): string | null {
  if (end === null || end.code === 0) return null
  return end.code === null
    ? `The command was ended by ${end.signal ?? 'an error'}.`
    : `Exit code: ${end.code}`
}

/** The directory in which the next command starts. */
interface ShellFolder {
  findStart(): Promise<string>
  /** Reads the directory in which a command ended. Returns a note for the model if the next command starts elsewhere. */
  recordEnd(cwdFile: string): Promise<string | null>
}

function createShellFolder({ cwd, mayEnterFolder, shells }: ToolEnvironment): ShellFolder {
  const mayEnter = mayEnterFolder ?? ((folder) => isPathWithin(folder, resolveRealPath(cwd)))
  return {
    async findStart() {
      const isThere = await stat(shells.folder ?? cwd).then(
        (facts) => facts.isDirectory(),
        () => false,
      )
      if (!isThere) shells.folder = null
      return shells.folder ?? cwd
    },
    async recordEnd(cwdFile) {
      const folder = (await readOwnFile(cwdFile)).replace(/\n$/, '')
      if (folder === '') return null
      if (mayEnter(folder)) {
        shells.folder = folder === resolveRealPath(cwd) ? null : folder
        return null
      }
      shells.folder = null
      return `The next command starts in ${cwd} again, because ${folder} is outside the permitted directories.`
    },
  }
}

/** Reads a file that a command may have replaced by a link to a file that the command cannot read; empty if missing. */
async function readOwnFile(path: string): Promise<string> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => null)
  try {
    return (await file?.stat())?.isFile() === true ? ((await file?.readFile('utf8')) ?? '') : ''
  } finally {
    await file?.close()
  }
}

function createBashOutputTool({ shells }: ToolEnvironment): AgentTool {
  return defineTool<{ bash_id: string; filter?: string }>({
    description:
      'Returns the output of a background command since the last call of BashOutput for it, and whether it still runs.',
    fields: {
      bash_id: { type: 'string', description: 'The id that Bash returned.' },
      filter: {
        type: 'string',
        description:
          'Show only lines that match this regular expression. The other lines are not shown by later calls either.',
      },
    },
    required: ['bash_id'],
    run({ bash_id, filter }) {
      const shell = findShell(bash_id, shells)
      const select = filter === undefined ? (text: string) => text : createLineFilter(filter)
      const end = shell.end()
      const status = end === null ? 'Running.' : (describeFailure(end) ?? 'Exit code: 0')
      const shown = select(shell.output.take().trimEnd())
      return `${status}\nOutput:\n${shown === '' ? '(no new output)' : shown}`
    },
  })
}

function createKillShellTool({ shells }: ToolEnvironment): AgentTool {
  return defineTool<{ shell_id: string }>({
    description: 'Ends a background command with all processes that it started.',
    fields: { shell_id: { type: 'string', description: 'The id that Bash returned.' } },
    required: ['shell_id'],
    async run({ shell_id }) {
      const { process, end, command } = findShell(shell_id, shells)
      if (end() !== null && !process.isAlive()) return `The command ${shell_id} had ended already.`
      await process.stop()
      return `Ended ${shell_id}: ${command}`
    },
  })
}

function findShell(id: string, shells: ToolEnvironment['shells']): BackgroundShell {
  const shell = shells.find(id)
  if (shell !== null) return shell
  const ids = shells.listIds()
  throw new ToolError(
    `There is no background command ${id}. ${ids.length === 0 ? 'None was started.' : `There are: ${ids.join(', ')}.`}`,
  )
}
