/** The command as a process. */
import { fileURLToPath } from 'node:url'

const { TIDEMARK_TEST_COMMAND } = process.env

/** Arguments of `node` before those of the command, which runs as a build of the present sources where one can be made. */
export const TIDEMARK_COMMAND: readonly string[] =
  TIDEMARK_TEST_COMMAND === undefined
    ? ['--conditions=tidemark-source', fileURLToPath(new URL('./run-sources.ts', import.meta.url))]
    : [TIDEMARK_TEST_COMMAND]
