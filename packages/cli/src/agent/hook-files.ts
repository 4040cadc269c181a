/**
 * The hooks of a project as items that the user trusts: event, matcher and command, with the content of the files of the
 * project that the command names. What those files run in turn is not followed, except scripts of a `package.json`.
 */
import { statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isObject } from '@tidemark/core'
import { HOOK_EVENTS, type HookCommandSettings, type HookSettings } from 'tidemark/internal'
import { type FileContent, readWholeFile } from '../tools/file-content.ts'
import { isPathWithin, resolveToolPath, toShownPath } from '../tools/tool-paths.ts'
import { parseCommand } from './command-words.ts'
import type { TrustItem } from './folder-trust.ts'

export interface HookPart {
  readonly item: TrustItem
  /** The hook alone, in the shape of settings. */
  readonly hooks: HookSettings
}

/** Splits hooks into single ones, each with its item. */
export async function listHookParts(hooks: HookSettings, folder: string): Promise<readonly HookPart[]> {
  const parts: HookPart[] = []
  for (const event of HOOK_EVENTS)
    for (const { matcher = '', hooks: commands } of hooks[event] ?? [])
      for (const command of commands) {
        const when = matcher === '' || matcher === '*' ? `${event}:` : `${event} (${matcher}):`
        const files = await describeRunFiles(command, folder)
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

/** Describes the files of the project that a command runs, for an item of trust. */
export async function describeRunFiles(
  command: HookCommandSettings,
  folder: string,
): Promise<NonNullable<TrustItem['files']>> {
  const files = await listRunFiles(command, folder)
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
 * Finds the files of the project that a command names, whatever stands before them, and those by which another name is
 * defined (`npm run`, `make`, `python -m`). Scripts of a `package.json` are followed, recipes of a makefile are not.
 */
export async function listRunFiles(
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
  /** Scripts of a `package.json` that were read, by path and name. */
  readonly followed: Set<string>
}

/** Adds the files that the words name, with relative paths in `base` and in each folder that another word names. */
async function addRunFiles(words: readonly string[], base: string, search: RunFileSearch): Promise<void> {
  const names = [...new Set(words.flatMap(listPathNames))]
  const bases = listBases(names, base, search.folder)
  const defining = words.flatMap((word, index) => listDefiningFiles(basename(word), words.slice(index + 1)))
  for (const path of new Set(
    [...bases].flatMap((each) => [...names, ...defining].map((name) => resolveToolPath(name, each))),
  )) {
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

const MOST_BASES = 20

/** Returns the folders in which a word may name a file: where the command starts, and those that it names, one in another. */
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

/** A database that a server is given changes with each run, and nothing runs it. */
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

/** Returns all words of a line for the shell, without quotes, those of the commands in it and in its quotes included. */
function listWords(line: string): readonly string[] {
  return parseCommand(line).parts.flatMap(({ words, inputs }) =>
    [...words, ...inputs].flatMap(({ text }) =>
      /\s/.test(text) && text.length < line.length ? [text, ...listWords(text)] : [text],
    ),
  )
}

/** A variable or a substitution with which a word begins. It stands for the folder of the project. */
const EXPANSION = /^(?:\$\{[^}]*\}|\$\w+)?\/+/

/**
 * Returns the paths that a word may name: the word, what follows a variable at its beginning or the name of an option, and
 * each part of a list (`--import=./a.mjs`, `-fown.mk`, `PATH=bin:lib`).
 */
function listPathNames(word: string): readonly string[] {
  const parts = [word, word.replace(/^-\w/, ''), ...word.split(/[=:,@]/)]
  return parts.flatMap((part) => [part, part.replace(EXPANSION, '')]).filter((part) => part !== '')
}

const PACKAGE_RUNNER = /^(?:npm|pnpm|yarn|bun)$/
const MAKE = /^g?make$/
const PYTHON_RUNNER = /^(?:python[\d.]*|uv|poetry)$/

/** Returns the files in which a program looks up the name that it is given: a script, a target or a module. */
function listDefiningFiles(program: string, rest: readonly string[]): readonly string[] {
  if (PACKAGE_RUNNER.test(program) || (program === 'node' && rest.includes('--run'))) return ['package.json']
  if (MAKE.test(program)) return ['GNUmakefile', 'makefile', 'Makefile']
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

/** Returns the real paths of the files of the project that hooks run. Whoever changes one of them decides what runs. */
export async function listHookFiles(hooks: HookSettings, folder: string): Promise<readonly string[]> {
  const commands = HOOK_EVENTS.flatMap((event) => (hooks[event] ?? []).flatMap((group) => group.hooks))
  const files = await Promise.all(commands.map((command) => listRunFiles(command, folder)))
  return [...new Set(files.flat().map(({ realPath }) => realPath))]
}

/**
 * Returns a check of a command before each run: whether the files that it runs are still those of `items`, which the
 * user has trusted. A command that is in none of them is the user's own.
 */
export function createContentCheck(
  items: readonly TrustItem[],
  folder: string,
): (command: HookCommandSettings) => Promise<string | null> {
  return async (command) => {
    const parts = JSON.stringify(describeCommand(command))
    const trusted = items.filter((item) => JSON.stringify(item.parts.slice(1)) === parts)
    if (trusted.length === 0) return null
    const now = JSON.stringify(await describeRunFiles(command, folder))
    if (trusted.some(({ files = [] }) => JSON.stringify(files) === now)) return null
    return 'A file that it runs has changed since you trusted it. It can be trusted again before the next start.'
  }
}
