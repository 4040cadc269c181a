/** The command as a process. */
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const { TIDEMARK_TEST_COMMAND } = process.env

/** Arguments of `node` before those of the command, which runs as a build of the present sources where one can be made. */
export const TIDEMARK_COMMAND: readonly string[] =
  TIDEMARK_TEST_COMMAND === undefined
    ? ['--conditions=tidemark-source', fileURLToPath(new URL('./run-sources.ts', import.meta.url))]
    : [TIDEMARK_TEST_COMMAND]

/** The sample log of that command, which it never writes. */
export const COMMAND_SAMPLE: string =
  TIDEMARK_TEST_COMMAND === undefined
    ? fileURLToPath(new URL('../sample/login-bug.jsonl', import.meta.url))
    : join(dirname(TIDEMARK_TEST_COMMAND), 'sample', 'login-bug.jsonl')
