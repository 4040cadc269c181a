/**
 * Before the workers of a test run start: an environment that is the same on every machine, in every terminal and under
 * every way to start the run (`npm test`, `npx vitest`, a git hook). Workers and the processes of tests inherit it.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

type Environment = Readonly<Record<string, string | undefined>>

/** Variables that reach tests: where programs and temporary files are, and what a run of this repository is asked for. */
const KEPT =
  /^(?:path|pathext|comspec|systemroot|te?mp|tmpdir|vitest.*|test|node_env|tidemark_run_share|tidemark_seed|tidemark_test_command|tidemark_test_database|tidemark_test_previous|golden_dump)$/i

/** Starting is most of what a short-lived process costs, and compiling most of starting: compiled code is kept between runs. */
export const COMPILED: string = fileURLToPath(
  new URL('../node_modules/.cache/tidemark-test-compiled', import.meta.url),
)

/**
 * Returns the variables for tests. Keys, switches, colours, proxies, the configuration of git and npm, and options of Node
 * of the surrounding shell are left out; the home is an empty folder.
 */
export function createTestEnvironment(given: Environment, home: string): Environment {
  const kept = Object.entries(given).filter(([name]) => KEPT.test(name))
  return {
    ...Object.fromEntries(kept),
    HOME: home,
    USERPROFILE: home,
    SHELL: '/bin/sh',
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    GIT_CONFIG_NOSYSTEM: '1',
    NODE_COMPILE_CACHE: COMPILED,
  }
}

const MEMORY = '/dev/shm'
const NEEDED_BYTES = 4e9

/**
 * Returns a new folder for the temporary files of a run. It is in memory where that has room and programs can be started
 * there: waiting for the disk is most of what a test with a session takes.
 */
function makeTemporaryFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    if (bavail * bsize < NEEDED_BYTES) throw new Error('too small')
    const folder = mkdtempSync(join(MEMORY, 'tidemark-tests-'))
    const program = join(folder, 'program')
    writeFileSync(program, '#!/bin/sh\nexit 0\n', { mode: 0o755 })
    if (spawnSync(program).status === 0) return folder
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // As on systems without such a folder.
  }
  return mkdtempSync(join(tmpdir(), 'tidemark-tests-'))
}

/** Replaces the environment of this process, and returns what removes its temporary files and its home after the run. */
export default function setup(): () => void {
  const folder = makeTemporaryFolder()
  const home = mkdtempSync(join(folder, 'home-'))
  const variables = { ...createTestEnvironment(process.env, home), TMPDIR: folder }
  for (const name of Object.keys(process.env)) if (!(name in variables)) delete process.env[name]
  Object.assign(process.env, variables)
  process.umask(0o022)
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
}
