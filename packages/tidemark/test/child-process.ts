/** Child processes for tests that need real ones. They run the sources and print lines. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

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
  const child = spawn(process.execPath, ['--conditions=tidemark-source', path, ...given], {
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
