/** The command as a process: what the committed bin calls. */
import { main } from './main.ts'
import { processTerminal } from './terminal.ts'

export async function run(): Promise<void> {
  process.stdout.on('error', leaveQuietly)
  process.exitCode = await main(process.argv.slice(2), processTerminal(process))
}

/** Whoever read our output has seen enough (`tidemark start | head`): that is no fault. */
function leaveQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit()
}
