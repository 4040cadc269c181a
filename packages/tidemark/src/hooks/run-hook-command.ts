/**
 * Runs the command of a hook: writes the input to standard input, and keeps output and errors up to a limit. Stopping
 * the command also ends every process that it started.
 */
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { findProgram, signalGroup, stopGroup, waitForExit } from '../platform/process-groups.ts'

interface HookProcess {
  /** A line for the shell or, with `args`, a program. */
  readonly command: string
  readonly args?: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Text for standard input. */
  readonly input: string
  readonly signal?: AbortSignal
  /** Returns the call that runs the given one, for example in a sandbox. Default: the call is run unchanged. */
  readonly wrap?: (program: string, args: readonly string[]) => readonly [string, readonly string[]]
}

export interface HookProcessEnd {
  /** The exit code; null if a signal ended the command. */
  readonly code: number | null
  readonly signal: string | null
  readonly output: string
  readonly errors: string
  /** True if the output was longer than what is kept. */
  readonly isCut: boolean
}

/** Bytes of output, and of errors, that are kept. What a command prints beyond them is read and dropped. */
const MAX_OUTPUT_BYTES = 1_000_000

/** Process groups of commands that run or are being ended. None of them may outlive this process. */
const runningGroups = new Set<number>()

function killRunningGroups(): void {
  for (const group of runningGroups) signalGroup(group, 'SIGKILL')
}

/**
 * Runs a command and waits for its end. Rejects if it cannot be started. After an abort of `signal`, its processes are
 * ended; callers do not wait for the result then.
 */
export async function runHookCommand(given: HookProcess): Promise<HookProcessEnd> {
  const { command, args, cwd, env, input, signal, wrap = (...call) => call } = given
  const [program, programArguments] = wrap(
    ...(args === undefined ? createShellCall(command, env) : ([command, args] as const)),
  )
  const child = spawn(program, programArguments, { cwd, env, detached: true, stdio: 'pipe' })
  const group = child.pid
  const stop = async (): Promise<void> => {
    if (group === undefined) return
    await stopGroup(group)
    runningGroups.delete(group)
  }
  const stopAtAbort = (): void => void stop()
  if (group !== undefined) {
    if (runningGroups.size === 0) {
      process.removeListener('exit', killRunningGroups)
      process.once('exit', killRunningGroups)
    }
    runningGroups.add(group)
  }
  signal?.addEventListener('abort', stopAtAbort)
  // A command may close its standard input without reading it. That is not a failure.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [output, errors] = [collectOutput(child.stdout), collectOutput(child.stderr)]
  try {
    if (signal?.aborted === true) stopAtAbort()
    const { code, signal: endSignal } = await waitForExit(child, [child.stdout, child.stderr])
    return { code, signal: endSignal, output: output.text(), errors: errors.text(), isCut: output.isCut() }
  } finally {
    signal?.removeEventListener('abort', stopAtAbort)
    // A process that the command started in the background may continue. After an abort, `stop` ends it.
    if (group !== undefined && signal?.aborted !== true) runningGroups.delete(group)
  }
}

/**
 * Returns the program and arguments that run a line in the shell. `--norc`: bash would mistake standard input for a
 * remote connection and read the user's `.bashrc`, whose output would count as the output of the hook.
 */
function createShellCall(line: string, env: NodeJS.ProcessEnv): readonly [string, readonly string[]] {
  const bash = findProgram('bash', env)
  return bash === null ? ['sh', ['-c', line]] : [bash, ['--norc', '-c', line]]
}

/** Keeps the first bytes of a stream, and reads and drops the rest, so that the command can continue to write. */
function collectOutput(stream: Readable): { readonly text: () => string; readonly isCut: () => boolean } {
  const kept: Buffer[] = []
  let bytes = 0
  stream.on('data', (chunk: Buffer) => {
    const room = MAX_OUTPUT_BYTES - bytes
    if (room > 0) kept.push(chunk.subarray(0, room))
    bytes += chunk.length
  })
  stream.on('error', () => {})
  return { text: () => Buffer.concat(kept).toString('utf8'), isCut: () => bytes > MAX_OUTPUT_BYTES }
}
