/** The command as a process, run on the sources: what tests of whole processes start. Compiled code is kept between them. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

enableCompileCache(
  fileURLToPath(new URL('../../../node_modules/.cache/tidemark-test-compiled', import.meta.url)),
)
const { run } = await import('../src/commands/main.ts')
await run()
