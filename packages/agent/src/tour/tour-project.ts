/**
 * The sample project of the tour: copies of it, real test runs in them, and the tools' environment. All copies are deleted, except the one
 * whose session the user wants to try. It is kept in Tidemark's data folder until a later tour replaces it.
 */
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { SAMPLE_PROJECT_PATH } from '../sample-project.ts'

/** A folder for copies of the sample project. */
export interface TourFolder {
  /** Environment of the model's commands: the Node of this process, and none of the user's settings. */
  readonly env: Readonly<Record<string, string>>
  /** Copies the sample project to a new folder. `home` is a folder beside it, for the session. */
  copyProject(name: string): Promise<TourProject>
  /** Removes everything that is not kept. Also done when the process ends without this call. */
  remove(): void
}

/** A folder whose project and session can be kept. */
interface KeepableFolder extends TourFolder {
  /** Keeps the folder, and removes the one that an earlier tour has kept. Returns its path. */
  keep(): Promise<string>
}

/** A copy of the sample project, with a Tidemark home and an environment for its session. */
export interface TourProject {
  readonly folder: string
  readonly home: string
  readonly env: TourFolder['env']
}

/** Creates the temporary folder of the tour. It is removed by `remove`, or when the process ends. */
export async function createTourFolder(): Promise<TourFolder> {
  return openTourFolder(await realpath(await mkdtemp(join(tmpdir(), 'tidemark-tour-'))))
}

function createToolEnvironment(root: string): TourFolder['env'] {
  return {
    PATH: [dirname(process.execPath), process.env.PATH ?? ''].join(delimiter),
    HOME: root,
    NO_COLOR: '1',
  }
}

function listProjectFolders(root: string, name: string): Pick<TourProject, 'folder' | 'home'> {
  return { folder: join(root, name, 'till'), home: join(root, name, 'home') }
}

/** Opens a folder that is removed at the end of the process, unless it is released. */
function openTourFolder(root: string): TourFolder & { release(): void } {
  const env = createToolEnvironment(root)
  const removeNow = (): void => rmSync(root, { recursive: true, force: true, maxRetries: 3 })
  // These signals would end the process without its `exit` event. The command line handles Ctrl-C.
  const endProcess = (): never => process.exit(1)
  process.once('exit', removeNow)
  for (const signal of ['SIGTERM', 'SIGHUP']) process.once(signal, endProcess)
  const release = (): void => {
    process.off('exit', removeNow)
    for (const signal of ['SIGTERM', 'SIGHUP']) process.off(signal, endProcess)
  }
  return {
    env,
    async copyProject(name) {
      const { folder, home } = listProjectFolders(root, name)
      await cp(SAMPLE_PROJECT_PATH, folder, { recursive: true })
      await mkdir(home, { recursive: true })
      return { folder, home, env }
    },
    release,
    remove() {
      release()
      removeNow()
    },
  }
}

/** Name of a file that marks kept folders. A folder without it belongs to a tour that is running or was killed. */
const KEPT_MARK = 'kept'
const KEPT_PROJECT = 'session'
/** Milliseconds after which an unmarked folder counts as left by a killed tour. */
const LEFT_BEHIND_MS = 86_400_000

function findKeptParent(dataHome: string): string {
  return join(dataHome, 'tour')
}

/** Creates a folder in Tidemark's data folder for the tour's session. It is removed at the end, unless it is kept. */
export async function createKeepableTourFolder(dataHome: string): Promise<KeepableFolder> {
  const parent = findKeptParent(dataHome)
  await mkdir(parent, { recursive: true, mode: 0o700 })
  const date = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
  const root = await realpath(await mkdtemp(join(parent, `${date}-`)))
  const folder = openTourFolder(root)
  let isKept = false
  return {
    ...folder,
    copyProject: () => folder.copyProject(KEPT_PROJECT),
    async keep() {
      await writeFile(join(root, KEPT_MARK), '')
      isKept = true
      folder.release()
      await removeOtherFolders(parent, root)
      return root
    },
    remove() {
      if (!isKept) folder.remove()
    },
  }
}

/** Removes folders that earlier tours have kept or left behind. */
async function removeOtherFolders(parent: string, own: string): Promise<void> {
  for (const { root, isKept } of await listFolders(parent)) {
    const isOld = Date.now() - (await stat(root)).mtimeMs > LEFT_BEHIND_MS
    if (root !== own && (isKept || isOld)) await rm(root, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function listFolders(
  parent: string,
): Promise<readonly { readonly root: string; readonly isKept: boolean }[]> {
  const names = await readdir(parent).catch(() => [])
  return await Promise.all(
    names.sort().map(async (name) => {
      const root = join(await realpath(parent), name)
      const isKept = await stat(join(root, KEPT_MARK)).then(
        () => true,
        () => false,
      )
      return { root, isKept }
    }),
  )
}

/** Returns the project of the session that the user tried last; null if there is none. `root`: the folder to delete. */
export async function findKeptTourProject(
  dataHome: string,
): Promise<(TourProject & { readonly root: string }) | null> {
  const kept = (await listFolders(findKeptParent(dataHome))).filter(({ isKept }) => isKept).at(-1)
  if (kept === undefined) return null
  const { root } = kept
  return { ...listProjectFolders(root, KEPT_PROJECT), env: createToolEnvironment(root), root }
}

/** The result of one test run. */
export interface TestRunResult {
  readonly passed: number
  readonly failed: number
  /** The name of the first test that failed; null if none did. */
  readonly firstFailure: string | null
}

/** Runs the tests of a project, in a process of their own. All counts are 0 if they cannot be run. */
export async function runProjectTests({ folder, env }: TourProject): Promise<TestRunResult> {
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
