/**
 * The hooks of a project as items for trust: event, matcher and command, and the content of the project's files that the command names.
 * Files that those run in turn are not followed, except scripts of a `package.json`.
 */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { HookSettings } from 'tidemark/project'
import { compileGlob } from 'tidemark/tools'
import { isObject } from '../json-value.ts'
import { type FileContent, readWholeFile } from '../tools/file-content.ts'
import { isFile, isPathWithin, resolveToolPath, toShownPath } from '../tools/tool-access.ts'
import { isCodeRunner } from './command-table.ts'
import { parseCommand } from './command-words.ts'
import type { TrustItem } from './folder-trust.ts'

/** A command of a hook, as the settings have it. */
export type HookCommandSettings = NonNullable<HookSettings['Stop']>[number]['hooks'][number]

interface HookPart {
  readonly item: TrustItem
  /** This one hook, in the format of settings. */
  readonly hooks: HookSettings
}

/** Splits hooks into single hooks, each with its item for trust. */
export async function splitHooksForTrust(hooks: HookSettings, folder: string): Promise<readonly HookPart[]> {
  const parts: HookPart[] = []
  for (const [event, groups] of Object.entries(hooks))
    for (const { matcher = '', hooks: commands } of groups)
      for (const command of commands) {
        const when = matcher === '' || matcher === '*' ? `${event}:` : `${event} (${matcher}):`
        const files = await hashCommandFiles(command, folder)
        const item = {
          setting: 'hooks',
          parts: [when, ...describeCommand(command)],
          ...(files.length === 0 ? {} : { files }),
        }
        parts.push({ item, hooks: { [event]: [{ matcher, hooks: [command] }] } })
      }
  return parts
}

function describeCommand({ command, args }: HookCommandSettings): readonly string[] {
  return args === undefined ? [command] : [command, `with ${JSON.stringify(args)}`]
}

/** Returns the project's files that a command runs, with the hashes of their content, as an item for trust lists them. */
export async function hashCommandFiles(
  command: HookCommandSettings,
  folder: string,
): Promise<NonNullable<TrustItem['files']>> {
  const files = await findCommandFiles(command, folder)
  return files.map(({ path, hash }) => ({ path: toShownPath(path, folder), hash }))
}

/** A file that a command runs. */
interface RunFile {
  /** The path as the command names it, absolute. */
  readonly path: string
  readonly realPath: string
  readonly hash: string
}

/**
 * Finds the project's files that a command names, whatever words precede them: by path, without extension, by a pattern, or by their
 * folder; and files that define another name (`npm run`, `make`, `python -m`). Scripts of a `package.json` are followed, recipes of a
 * makefile are not.
 */
export async function findCommandFiles(
  { command, args }: HookCommandSettings,
  folder: string,
): Promise<readonly RunFile[]> {
  const found = new Map<string, RunFile>()
  const words = args === undefined ? listWords(command) : [command, ...args]
  await addRunFiles(words, folder, { folder, found, followed: new Set() })
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

interface RunFileSearch {
  readonly folder: string
  readonly found: Map<string, RunFile>
  /** Scripts of a `package.json` that were already followed, by path and name. */
  readonly followed: Set<string>
}

/** Adds the files that the words name. Relative paths are resolved in `base` and in each folder that another word names. */
async function addRunFiles(words: readonly string[], base: string, search: RunFileSearch): Promise<void> {
  for (const path of listNamedPaths(words, base, search.folder)) {
    if (!isPathWithin(path, search.folder)) continue
    const content = await readWholeFile(path).catch(() => null)
    if (content === null || isData(content)) continue
    search.found.set(path, { path, realPath: content.realPath, hash: content.version })
    if (basename(path) !== 'package.json') continue
    const scripts = listScripts(content.bytes.toString('utf8'), words).filter(
      ([name]) => !search.followed.has(`${path}\n${name}`),
    )
    for (const [name] of scripts) search.followed.add(`${path}\n${name}`)
    for (const [, script] of scripts) await addRunFiles(listWords(script), dirname(path), search)
  }
}

/** Returns the paths of files that the words may name. Most of them do not exist. */
function listNamedPaths(words: readonly string[], base: string, folder: string): ReadonlySet<string> {
  const names = [...new Set(words.flatMap(listPathNames))]
  const bases = [...listBases(names, base, folder)]
  const defining = words.flatMap((word, index) => listDefiningFiles(basename(word), words.slice(index + 1)))
  const isRun = names.some((name) => isCodeRunner(basename(name)))
  const isEach = names.some((name) => RUNS_EACH.test(basename(name)))
  const short = names.filter(
    (name) => /\w$/.test(name) && !name.startsWith('-') && (isRun || name.includes('/')),
  )
  const several = [
    ...bases.flatMap((each) => names.filter(isPattern).flatMap((name) => findMatches(name, each, folder))),
    ...(isEach ? bases.filter((each) => each !== folder).flatMap(listFiles) : []),
  ]
  return new Set([
    ...bases.flatMap((each) => [...names, ...defining].map((name) => resolveToolPath(name, each))),
    // Programs accept `hooks/check` for `hooks/check.js`.
    ...bases.flatMap((each) =>
      short.flatMap((name) => EXTENSIONS.map((end) => resolveToolPath(`${name}${end}`, each))),
    ),
    ...listStartedFolders(words, bases).flatMap(listEntryFiles),
    // Without a program that runs them, several files are taken to be input of a checker or formatter.
    ...several.filter((path) => isRun || isProgram(path)),
  ])
}

/** Programs that run a package of the project when given its path. */
const PACKAGE_STARTERS = /^(?:npx|bunx|pnpx|npm|pnpm|yarn)$/
/** Programs and shell keywords that run something for each of several files. */
const RUNS_EACH = /^(?:run-parts|-exec(?:dir)?|-ok(?:dir)?|xargs|parallel|for|while|entr)$/
const EXTENSIONS = '.js .mjs .cjs .ts .mts .cts .json .node .sh .bash .py .rb .pl .php .lua'.split(' ')

/** Returns true for a shell script or an executable file. */
function isProgram(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found?.isFile() === true && (/\.(?:ba|z|k|fi)?sh$/.test(path) || (found.mode & 0o111) !== 0)
}

/** Returns the folders with which a program is started: those after the program's name and before a file. */
function listStartedFolders(words: readonly string[], bases: readonly string[]): readonly string[] {
  const found = new Set<string>()
  let isStarting = false
  for (const word of words) {
    const name = basename(word.replace(/^\w+=/, ''))
    if ((isCodeRunner(name) && /\w/.test(word)) || PACKAGE_STARTERS.test(name)) isStarting = true
    else if (isStarting) {
      // A word that is only a variable is taken for the project's folder.
      const names = /^\$(?:\w+|\{[^}]*\})$/.test(word) ? ['.'] : listPathNames(word)
      const paths = bases.flatMap((base) => names.map((each) => resolveToolPath(each, base)))
      for (const path of paths.filter(isFolder)) found.add(path)
      // Words after the file or package that runs are its arguments.
      if (!word.startsWith('-') && (paths.some(isFile) || isPackageName(word, words))) isStarting = false
    }
  }
  return [...found]
}

/** Returns true for a word after `npx` that names a package from a registry. */
function isPackageName(word: string, words: readonly string[]): boolean {
  const before = words.slice(0, words.indexOf(word)).findLast((each) => !each.startsWith('-')) ?? ''
  return PACKAGE_STARTERS.test(basename(before))
}

const MOST_BASES = 20

/** Returns the folders from which a word may name a file: where the command starts, and the folders that it names, also nested. */
function listBases(names: readonly string[], base: string, folder: string): ReadonlySet<string> {
  const bases = new Set([base])
  for (const name of names)
    for (const each of [...bases]) {
      const path = resolveToolPath(name, each)
      if (bases.size < MOST_BASES && isPathWithin(path, folder) && isFolder(path)) bases.add(path)
    }
  return bases
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** Files that a program runs when given their folder, by name. */
const ENTRY_FILE = /^(?:(?:index|main|mod|__main__|__init__)\.\w+|package\.json)$/

/** Returns the files that run when a program is given a folder: entry files by name, and those that a package names. */
function listEntryFiles(folder: string): readonly string[] {
  return listEntries(folder)
    .filter((name) => ENTRY_FILE.test(name))
    .flatMap((name) => {
      const path = join(folder, name)
      return name === 'package.json' ? [path, ...listPackageEntries(path)] : [path]
    })
}

/** Returns the files in a folder and in its direct subfolders. */
function listFiles(folder: string): readonly string[] {
  const paths = listEntries(folder).map((name) => join(folder, name))
  return paths.flatMap((path) =>
    isFolder(path) ? listEntries(path).map((name) => join(path, name)) : [path],
  )
}

const MOST_ENTRIES = 500

function listEntries(folder: string): readonly string[] {
  try {
    return readdirSync(folder).slice(0, MOST_ENTRIES)
  } catch {
    return []
  }
}

/** Returns the files that a package names as its own: `main`, `bin`, `exports`. */
function listPackageEntries(path: string): readonly string[] {
  const { main, module, bin, exports } = parseJsonObject(readSmallFile(path))
  const names = [main, module, bin, exports].flatMap(listTexts).filter((text) => text !== '')
  return names.flatMap((name) =>
    ['', ...EXTENSIONS, '/index.js'].map((end) => resolveToolPath(`${name}${end}`, dirname(path))),
  )
}

function listTexts(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return isObject(value) ? Object.values(value).flatMap(listTexts) : []
}

function readSmallFile(path: string): string {
  try {
    return statSync(path).size > 1_000_000 ? '' : readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function isPattern(name: string): boolean {
  return /[*?[{]/.test(name) && /[^*?./]/.test(name)
}

/** Returns the files that a pattern matches, searched from its longest folder without wildcards. */
function findMatches(pattern: string, base: string, folder: string): readonly string[] {
  const steps = pattern.split('/')
  const isPlain = (step: string): boolean => !/[*?[{]/.test(step)
  let paths: readonly string[] = [base]
  for (const [index, step] of steps.entries()) {
    const isLast = index === steps.length - 1
    const matches = isPlain(step) ? null : compileGlob(step)
    const next = paths.flatMap((path) => {
      if (isPlain(step)) return [resolveToolPath(step === '' ? '.' : step, path)]
      if (step === '**')
        return [
          path,
          ...listEntries(path)
            .map((name) => join(path, name))
            .filter(isFolder),
        ]
      return listEntries(path).flatMap((name) => (matches?.([name]) === true ? [join(path, name)] : []))
    })
    paths = next
      .filter((path) => isPathWithin(path, folder) && (isLast || isFolder(path)))
      .slice(0, MOST_ENTRIES)
  }
  return paths
}

/** Returns true for data files, such as a server's database, which change with each run and are never executed. */
function isData({ bytes, mode }: FileContent): boolean {
  return bytes.includes(0) && (mode & 0o111) === 0
}

/** Returns the scripts of a `package.json` that a call names, with those that run before and after them. */
function listScripts(text: string, call: readonly string[]): readonly (readonly [string, string])[] {
  const scripts = parseJsonObject(parseJsonObject(text).scripts)
  const names = call.flatMap((word) => [`pre${word}`, word, `post${word}`])
  return [...new Set(names)].flatMap((name) => {
    const script = Object.hasOwn(scripts, name) ? scripts[name] : undefined
    return typeof script === 'string' ? [[name, script] as const] : []
  })
}

function parseJsonObject(value: unknown): Readonly<Record<string, unknown>> {
  try {
    const parsed = typeof value === 'string' ? JSON.parse(value) : value
    return isObject(parsed) ? parsed : {}
  } catch {
    return {}
  }
}

/**
 * Returns all words of a shell line without quotes, including those of commands inside it and inside its quotes. Also returns the words
 * split only at blanks, so that patterns stay whole (`hooks/{a,b}.sh`).
 */
function listWords(line: string): readonly string[] {
  const words = parseCommand(line).parts.flatMap(({ words: own, inputs }) =>
    [...own, ...inputs].flatMap(({ text }) =>
      /\s/.test(text) && text.length < line.length ? [text, ...listWords(text)] : [text],
    ),
  )
  return [
    ...words,
    ...line
      .replaceAll(OUTPUT, ' ')
      .replaceAll(/['"\\]/g, '')
      .split(/[\s;&|()<>`]+/)
      .filter((word) => word !== ''),
  ]
}

/** Matches a redirection to a file. Such a file is written, not run. */
const OUTPUT = />{1,2}[|&]?[ \t]*[^\s;&|()<>]+/g

/** Matches a variable or substitution at the beginning of a word. It is taken for the project's folder. */
const EXPANSION = /^(?:\$\{[^}]*\}|\$\w+)?\/+/
/** Matches a variable in the middle of a word, which may stand for any name. */
const INNER_EXPANSION = /\$\{[^}]*\}|\$\w+/g

/**
 * Returns the paths that a word may name: the whole word, the rest after a variable or option name at its beginning, and each part of a
 * list (`--import=./a.mjs`, `-fown.mk`, `PATH=bin:lib`, `-Ihooks`).
 */
function listPathNames(word: string): readonly string[] {
  const parts = [word, word.replace(/^-\w/, ''), ...word.split(/[=:,@]/), ...word.split(/[=:@]/)]
  return [...new Set(parts.flatMap((part) => [part, part.replace(EXPANSION, '')]))]
    .flatMap((part) => [part, part.replaceAll(INNER_EXPANSION, '*')])
    .filter((part) => part !== '' && part.length < 1_000)
}

const PACKAGE_RUNNER = /^(?:npm|pnpm|yarn|bun)$/
const MAKE = /^g?make$/
const PYTHON_RUNNER = /^(?:python[\d.]*|uv|poetry)$/

/** Files that define what a program does, by the program's name. */
const DEFINING_FILES: Readonly<Record<string, string>> = {
  just: 'justfile Justfile .justfile',
  task: 'Taskfile.yml Taskfile.yaml taskfile.yml',
  rake: 'Rakefile rakefile Rakefile.rb',
  tox: 'tox.ini',
  nox: 'noxfile.py',
  invoke: 'tasks.py',
  deno: 'deno.json deno.jsonc package.json',
  'pre-commit': '.pre-commit-config.yaml',
  lefthook: 'lefthook.yml .lefthook.yml lefthook-local.yml',
  'lint-staged': 'package.json .lintstagedrc .lintstagedrc.json lint-staged.config.js lint-staged.config.mjs',
  composer: 'composer.json',
  gradle: 'build.gradle build.gradle.kts settings.gradle settings.gradle.kts',
  mvn: 'pom.xml',
  ant: 'build.xml',
  cargo: 'Cargo.toml build.rs .cargo/config.toml',
  go: 'go.mod',
  docker: 'Dockerfile compose.yml compose.yaml docker-compose.yml docker-compose.yaml',
  mage: 'magefile.go',
  grunt: 'Gruntfile.js Gruntfile.cjs',
  gulp: 'gulpfile.js gulpfile.mjs gulpfile.cjs',
}

/** Returns the files in which a program looks up a given name: a script, a target or a module. */
function listDefiningFiles(program: string, rest: readonly string[]): readonly string[] {
  if (PACKAGE_RUNNER.test(program) || (program === 'node' && rest.includes('--run'))) return ['package.json']
  if (MAKE.test(program)) return ['GNUmakefile', 'makefile', 'Makefile']
  if (Object.hasOwn(DEFINING_FILES, program)) return DEFINING_FILES[program]?.split(' ') ?? []
  const module = PYTHON_RUNNER.test(program) ? readOption(rest, ['-m', '--module']) : null
  if (module === null) return []
  const parts = module.split('.')
  const packages = parts.map((_, index) => join(...parts.slice(0, index + 1), '__init__.py'))
  return [...packages, `${join(...parts)}.py`, join(...parts, '__main__.py')]
}

/** Returns the value of an option: `-C sub`, `-Csub`, `--dir sub` or `--dir=sub`; null if it is not given. */
function readOption(words: readonly string[], names: readonly string[]): string | null {
  for (const [index, word] of words.entries())
    for (const name of names) {
      if (word === name) return words[index + 1] ?? null
      const joined = name.startsWith('--') ? `${name}=` : name
      if (word.startsWith(joined) && word.length > joined.length) return word.slice(joined.length)
    }
  return null
}

/**
 * Returns the real paths of the project's files that hooks run, and of missing files that would run instead of them. A program
 * that writes one of them decides what runs.
 */
export async function listHookFiles(hooks: HookSettings, folder: string): Promise<readonly string[]> {
  const commands = Object.values(hooks).flatMap((groups) => groups.flatMap((group) => group.hooks))
  const files = await Promise.all(commands.map((command) => findCommandFiles(command, folder)))
  const paths = files.flat().map(({ realPath }) => realPath)
  return [...new Set([...paths, ...paths.flatMap(listRivals)])]
}

/** Returns missing files that would be run instead if they existed: `check` for `check.js`, `hooks.js` for `hooks/index.js`. */
function listRivals(path: string): readonly string[] {
  const folder = dirname(path)
  const end = EXTENSIONS.find((each) => path.endsWith(each)) ?? ''
  const rivals = ENTRY_FILE.test(basename(path)) ? EXTENSIONS.map((each) => `${folder}${each}`) : []
  return [...rivals, path.slice(0, path.length - end.length)].filter((each) => !existsSync(each))
}

/**
 * Returns a check, made before each run of a command, whether its files are still those of the trusted `items`: null if so, otherwise a
 * sentence. A command in none of the items is the user's own and needs no check.
 */
export function createHookFileCheck(
  items: readonly TrustItem[],
  folder: string,
): (command: HookCommandSettings) => Promise<string | null> {
  return async (command) => {
    const parts = JSON.stringify(describeCommand(command))
    const trusted = items.filter((item) => JSON.stringify(item.parts.slice(1)) === parts)
    if (trusted.length === 0) return null
    const now = JSON.stringify(await hashCommandFiles(command, folder))
    if (trusted.some(({ files = [] }) => JSON.stringify(files) === now)) return null
    return 'A file that it runs has changed since you trusted it. It can be trusted again before the next start.'
  }
}
