/**
 * Before the workers of a test run start: an environment that is the same on every machine, in every terminal and under
 * every way to start the run (`npm test`, `npx vitest`, a git hook). Workers and the processes of tests inherit it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** Variables that reach tests: where programs and temporary files are, and what a run of this repository is asked for. */
const KEPT =
  /^(?:path|pathext|comspec|systemroot|te?mp|tmpdir|vitest.*|test|node_env|tidemark_run_share|tidemark_seed|golden_dump)$/i

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
    // Starting is most of what a short-lived process costs, and compiling most of starting.
    NODE_COMPILE_CACHE: join(tmpdir(), 'tidemark-test-compiled'),
  }
}

/** Replaces the environment of this process, and returns what removes its home after the run. */
export default function setup(): () => void {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-test-home-'))
  const variables = createTestEnvironment(process.env, home)
  for (const name of Object.keys(process.env)) if (!(name in variables)) delete process.env[name]
  Object.assign(process.env, variables)
  process.umask(0o022)
  return () => rmSync(home, { recursive: true, force: true })
}
