/** Starting the installed command: `tidemark --help` loads no command, so it costs little more than Node itself. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { BenchCase } from '../harness/bench-case.ts'

const BUILT = fileURLToPath(new URL('../../packages/cli/dist/index.mjs', import.meta.url))
const COMMAND = fileURLToPath(new URL('../../packages/cli/bin/tidemark.mjs', import.meta.url))

async function runNode(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [...args])
  return stdout
}

export const benchCase: BenchCase = {
  name: 'help-start-up',
  compares: '`tidemark --help`, built, with `node -e 0`',
  bound: { atMost: 2 },
  async prepare() {
    if (!existsSync(BUILT)) throw new Error('the command is not built: run `npm run build`')
    if (!(await runNode(COMMAND, '--help')).includes('Usage:')) throw new Error('no help was printed')
    return {
      subject: () => runNode(COMMAND, '--help'),
      baseline: () => runNode('-e', '0'),
      calls: { subject: 1, baseline: 1 },
    }
  },
}
