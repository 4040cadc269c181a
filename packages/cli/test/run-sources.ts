/** The command as a process, run on the sources: what tests of whole processes start. */
import { run } from '../src/commands/main.ts'

await run()
