/** The sample project of the tour: throw-away copies of it, real test runs in them, and the tools' environment. */
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { cp, mkdir, mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { SAMPLE_PROJECT_PATH } from '../sample-session.ts'

export interface TourFolder {
  /** Environment of the commands that the model runs: the Node of this process, and nothing of the user's settings. */
  readonly env: Readonly<Record<string, string>>
  /** Copies the sample project to a new folder. `home` is a folder beside it, for the session. */
  copyProject(name: string): Promise<TourProject>
  /** Removes everything, also if the process ends before. */
  remove(): void
}

export interface TourProject {
  readonly folder: string
  readonly home: string
  readonly env: TourFolder['env']
}

/** Creates the temporary folder of the tour. It is removed by `remove`, or when the process ends. */
export async function createTourFolder(): Promise<TourFolder> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'tidemark-tour-')))
  const env = {
    PATH: [dirname(process.execPath), process.env.PATH ?? ''].join(delimiter),
    HOME: root,
    NO_COLOR: '1',
  }
  const removeNow = (): void => rmSync(root, { recursive: true, force: true, maxRetries: 3 })
  // These signals would end the process without the event `exit`. Ctrl-C is handled by the command line.
  const endProcess = (): never => process.exit(1)
  process.once('exit', removeNow)
  for (const signal of ['SIGTERM', 'SIGHUP']) process.once(signal, endProcess)
  return {
    env,
    async copyProject(name) {
      const [folder, home] = [join(root, name, 'till'), join(root, name, 'home')]
      await cp(SAMPLE_PROJECT_PATH, folder, { recursive: true })
      await mkdir(home, { recursive: true })
      return { folder, home, env }
    },
    remove() {
      process.off('exit', removeNow)
      for (const signal of ['SIGTERM', 'SIGHUP']) process.off(signal, endProcess)
      removeNow()
    },
  }
}

export interface TestRun {
  readonly passed: number
  readonly failed: number
  /** The name of the first test that failed; null if none did. */
  readonly firstFailure: string | null
}

/** Runs the tests of a project, in a process of their own. */
export async function runProjectTests({ folder, env }: TourProject): Promise<TestRun> {
  const output = await new Promise<string>((resolve) => {
    const options = { cwd: folder, env, timeout: 60_000 }
    execFile(process.execPath, ['--test', '--test-reporter=tap'], options, (_error, stdout) =>
      resolve(stdout),
    )
  })
  const count = (name: string): number => Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(output)?.[1] ?? 0)
  return {
    passed: count('pass'),
    failed: count('fail'),
    firstFailure: /^\s*not ok \d+ - (.*)$/m.exec(output)?.[1] ?? null,
  }
}
