/** The command as a process: what the committed bin calls. */
import { INTERRUPTED, main } from './main.ts'
import { processTerminal } from './terminal.ts'

export async function run(): Promise<void> {
  process.stdout.on('error', leave)
  const interruption = new AbortController()
  process.once('SIGINT', () => {
    interruption.abort()
    // Asked twice, it ends whatever it is doing.
    process.once('SIGINT', () => process.exit(INTERRUPTED))
  })
  process.exitCode = await main(process.argv.slice(2), processTerminal(process, interruption.signal))
}

function leave(error: NodeJS.ErrnoException): void {
  const { code, line } = outputFailure(error)
  process.stderr.write(line)
  process.exit(code)
}

/** Whoever read our output has seen enough (`tidemark start | head`): that is no fault. A full disk is one. */
export function outputFailure(error: NodeJS.ErrnoException): {
  readonly code: number | undefined
  readonly line: string
} {
  if (error.code === 'EPIPE') return { code: undefined, line: '' }
  return { code: 1, line: `tidemark: the output could not be written: ${error.message}\n` }
}
