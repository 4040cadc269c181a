/** The command as a process, run on the sources: what tests of whole processes start. Compiled code is kept between them. */
import { enableCompileCache } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

enableCompileCache(join(tmpdir(), 'tidemark-test-compiled'))
const { run } = await import('../src/commands/main.ts')
await run()
