/** Child processes for tests that need real ones. They run a build of the present sources, where one is made, and print lines. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const SOURCES = '--conditions=tidemark-source'
const { TIDEMARK_TEST_COMMAND } = process.env
/** The folder of `scripts/test-command.ts`; null if it was not run. */
const BUILD = TIDEMARK_TEST_COMMAND === undefined ? null : dirname(TIDEMARK_TEST_COMMAND)

/** Arguments of `node` for a program of tests. */
export function listProgramArguments(path: string): readonly string[] {
  const name = relative(ROOT, path).replaceAll(/[\\/]/g, '-').replace(/\.ts$/, '')
  const built = BUILD === null ? null : join(BUILD, 'dist', `program-${name}.mjs`)
  return built !== null && existsSync(built) ? [built] : [SOURCES, path]
}

/** Arguments of `node` with which a program can import the libraries by their names. */
export const LIBRARY_ARGUMENTS: readonly string[] =
  BUILD === null ? [SOURCES] : ['--import', join(BUILD, 'import-libraries.mjs')]

export interface Child {
  readonly process: ChildProcess
  /** Lines printed so far. */
  readonly said: readonly string[]
  /** Resolves with the first line that begins like this; rejects if the process ends without one. */
  heard(beginning: string): Promise<string>
  /** Resolves with the signal or exit code after the process has ended and all its lines were read. */
  readonly ended: Promise<string>
}

export function startChild(file: string, ...given: readonly string[]): Child {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const child = spawn(process.execPath, [...listProgramArguments(path), ...given], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const said: string[] = []
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => said.push(line))
  const ended = Promise.all([once(child, 'exit'), once(lines, 'close')]).then(([[code, signal]]) =>
    String(signal ?? code),
  )
  return { process: child, said, ended, heard: (beginning) => waitForLine({ said, lines, ended }, beginning) }
}

interface Hearing {
  readonly said: readonly string[]
  readonly lines: NodeJS.EventEmitter
  readonly ended: Promise<string>
}

async function waitForLine({ said, lines, ended }: Hearing, beginning: string): Promise<string> {
  const isIt = (line: string) => line.startsWith(beginning)
  const already = said.find(isIt)
  if (already !== undefined) return already
  return new Promise((resolve, reject) => {
    lines.on('line', (line: string) => isIt(line) && resolve(line))
    ended.then((how) =>
      reject(new Error(`it ended (${how}) without saying "${beginning}": ${said.join(' | ')}`)),
    )
  })
}
