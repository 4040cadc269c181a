/** The command as a process, run on the sources: what tests of whole processes start. Compiled code is kept between them. */
import { enableCompileCache } from 'node:module'
import { COMPILED } from '../../../scripts/test-environment.ts'

enableCompileCache(COMPILED)
const { run } = await import('../src/commands/main.ts')
await run()
