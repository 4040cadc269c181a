/**
 * Before tests that start processes: a build of the sources as they are now, with the command, the libraries, and the programs
 * that tests start. A build starts in a third of the CPU time of the sources, and hundreds of processes are started. Where the
 * bundler cannot be loaded, tests run the sources. A run without a browser for the page says so, once.
 */
import { createHash } from 'node:crypto'
import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findBrowser, NO_BROWSER } from '../packages/cli/test/page-browser.ts'
import config, { pageConfig } from '../tsdown.config.ts'
import { COMPILED } from './test-environment.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** The command, and the agent and the gateway that it starts, whose threads are files of their own. */
const PACKAGES = ['agent', 'gateway', 'cli']
/** Packages that documents and examples import. */
const LIBRARIES = ['tidemark', 'simulator']
/** Programs of tests; `listProgramArguments` in packages/tidemark/test/child-process.ts finds their builds. */
const PROGRAMS = ['packages/tidemark/test/*-process.ts', 'test/**/*-process.ts']
const BUILDS = fileURLToPath(new URL('../node_modules/.cache/tidemark-test-command', import.meta.url))
const DAY_MS = 86_400_000

/** What tests start, with compiled code kept between processes: their environment may be one without the variable for that. */
const START = `import { enableCompileCache } from 'node:module'
enableCompileCache(${JSON.stringify(COMPILED)})
const { run } = await import('./dist/index.mjs')
await run()
`

/** For `node --import`: lets a program that is no build import the built libraries by their names. */
const IMPORT_LIBRARIES = `import { registerHooks } from 'node:module'
const built = BUILT
registerHooks({
  resolve: (name, context, next) =>
    name in built ? { url: new URL(built[name], import.meta.url).href, shortCircuit: true } : next(name, context),
})
`

/** Builds everything and names the file that starts it in `TIDEMARK_TEST_COMMAND`. */
export default async function setup(): Promise<void> {
  if (findBrowser() === null) process.stderr.write(NO_BROWSER)
  const tsdown = await import('tsdown').catch(() => null)
  if (tsdown === null) return
  const made = join(BUILDS, `new-${process.pid}`)
  mkdirSync(made, { recursive: true })
  const configs = [config].flat().filter(({ name = '' }) => PACKAGES.includes(name))
  const entries = configs.flatMap(({ cwd = '', entry }) =>
    Object.entries(entry ?? {}).map(([name, path]) => [name, join(ROOT, cwd, String(path))]),
  )
  const libraries = listLibraryEntries()
  const programs = globSync(PROGRAMS, { cwd: ROOT }).map((path) => [
    `program-${path.replaceAll(/[\\/]/g, '-').replace(/\.ts$/, '')}`,
    join(ROOT, path),
  ])
  await tsdown.build({
    ...configs[0],
    config: false,
    cwd: ROOT,
    entry: Object.fromEntries([
      ...entries,
      ...libraries.map(({ entry, path }) => [entry, path]),
      ...programs,
    ]),
    deps: { alwaysBundle: /^@?tidemark/, neverBundle: /^(?!@?tidemark)[^./]/ },
    outDir: join(made, 'dist'),
    dts: false,
    clean: false,
  })
  await tsdown.build({
    ...pageConfig,
    config: false,
    cwd: join(ROOT, pageConfig.cwd),
    outDir: join(made, 'dist', 'page'),
    copy: [],
  })
  cpSync(join(ROOT, 'packages/page/src/page.css'), join(made, 'dist', 'page', 'page.css'))
  writeFileSync(join(made, 'start.mjs'), START)
  const built = Object.fromEntries(libraries.map(({ name, entry }) => [name, `./dist/${entry}.mjs`]))
  writeFileSync(join(made, 'import-libraries.mjs'), IMPORT_LIBRARIES.replace('BUILT', JSON.stringify(built)))
  // The build looks for its samples beside its folder, as the published ones do.
  for (const name of ['cli', 'agent'])
    cpSync(join(ROOT, 'packages', name, 'sample'), join(made, 'sample'), { recursive: true })
  process.env.TIDEMARK_TEST_COMMAND = join(keepOnce(made), 'start.mjs')
}

/** Every public entry of the libraries: the name that it is imported by, its name in the build, and its source. */
function listLibraryEntries(): readonly { name: string; entry: string; path: string }[] {
  const configs = [config].flat().filter(({ name = '' }) => LIBRARIES.includes(name))
  return configs.flatMap(({ name: folder = '', cwd = '', entry = {} }) => {
    const named = folder === 'tidemark' ? folder : `@tidemark/${folder}`
    return Object.entries(entry).map(([name, path]) => ({
      name: name === 'index' ? named : `${named}/${name}`,
      entry: `library-${folder}-${name}`,
      path: join(ROOT, cwd, String(path)),
    }))
  })
}

/** Moves a build to a folder named by its content: a run at the same time never sees a build change or half of one. */
function keepOnce(made: string): string {
  const hash = createHash('sha256')
  for (const name of readdirSync(made, { recursive: true, encoding: 'utf8' }).toSorted()) {
    const path = join(made, name)
    if (statSync(path).isFile()) hash.update(name).update(readFileSync(path))
  }
  const kept = join(BUILDS, hash.digest('hex').slice(0, 16))
  try {
    renameSync(made, kept)
  } catch {
    rmSync(made, { recursive: true })
  }
  for (const name of readdirSync(BUILDS)) {
    const path = join(BUILDS, name)
    if (path !== kept && statSync(path).mtimeMs < Date.now() - DAY_MS)
      rmSync(path, { recursive: true, force: true })
  }
  return kept
}
