/** The command as a process: what the committed bin calls. */
import { INTERRUPTED, main } from './main.ts'
import { processTerminal } from './terminal.ts'

export async function run(): Promise<void> {
  process.stdout.on('error', leaveQuietly)
  const interruption = new AbortController()
  process.once('SIGINT', () => {
    interruption.abort()
    // Asked twice, it ends whatever it is doing.
    process.once('SIGINT', () => process.exit(INTERRUPTED))
  })
  process.exitCode = await main(process.argv.slice(2), processTerminal(process, interruption.signal))
}

/** Whoever read our output has seen enough (`tidemark start | head`): that is no fault. */
function leaveQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit()
}
