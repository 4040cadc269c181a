/**
 * The hooks of a project as items that the user trusts: event, matcher and command, with the content of the files of the
 * project that the command runs. What those files run in turn is not followed, except scripts of a `package.json`.
 */
import { basename, dirname, join } from 'node:path'
import { isObject } from '@tidemark/core'
import { HOOK_EVENTS, type HookCommandSettings, type HookSettings } from 'tidemark/internal'
import { readWholeFile } from '../tools/file-content.ts'
import { isPathWithin, resolveToolPath, toShownPath } from '../tools/tool-paths.ts'
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
 * Finds the files of the project that a command runs: as a program, with an interpreter, or by a name that another file
 * defines (`npm run`, `make`, `python -m`). Scripts of a `package.json` are followed, recipes of a makefile are not.
 */
export async function listRunFiles(
  { command, args }: HookCommandSettings,
  folder: string,
): Promise<readonly RunFile[]> {
  const found = new Map<string, RunFile>()
  const calls = args === undefined ? splitCalls(command) : [[command, ...args]]
  await addRunFiles(calls, folder, { folder, found, followed: new Set() })
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

interface RunFileSearch {
  readonly folder: string
  readonly found: Map<string, RunFile>
  /** Scripts of a `package.json` that were read, by path and name. */
  readonly followed: Set<string>
}

/** Adds the files that the calls run, with relative paths in `base` and in each folder that they change to. */
async function addRunFiles(
  calls: readonly (readonly string[])[],
  base: string,
  search: RunFileSearch,
): Promise<void> {
  const bases = [base]
  for (const call of calls) {
    const [program, target] = skipPrefixes(call)
    if (program === 'cd' && target !== undefined) bases.push(resolveToolPath(target, bases.at(-1) ?? base))
    const words = listPrograms(call)
    for (const path of new Set(bases.flatMap((each) => words.map((word) => resolveToolPath(word, each))))) {
      if (!isPathWithin(path, search.folder)) continue
      const content = await readWholeFile(path).catch(() => null)
      if (content === null) continue
      search.found.set(path, { path, realPath: content.realPath, hash: content.version })
      if (basename(path) !== 'package.json') continue
      const scripts = listScripts(content.bytes.toString('utf8'), call).filter(
        ([name]) => !search.followed.has(`${path}\n${name}`),
      )
      for (const [name] of scripts) search.followed.add(`${path}\n${name}`)
      for (const [, script] of scripts) await addRunFiles(splitCalls(script), dirname(path), search)
    }
  }
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

/** Variables in a command that stand for the project. */
const PROJECT_VARIABLES = /\$(?:\{(?:CLAUDE|TIDEMARK)_PROJECT_DIR\}|(?:CLAUDE|TIDEMARK)_PROJECT_DIR\b)/g

/** Splits a line for the shell into calls of programs, roughly: quotes are dropped, so a path with spaces is not found. */
function splitCalls(line: string): readonly (readonly string[])[] {
  return line
    .replaceAll(PROJECT_VARIABLES, '.')
    .replaceAll(/["'\\]/g, '')
    .split(/[;|&(){}`\n]+/)
    .map((call) => call.trim().split(/\s+/))
}

/** Words before the name of a program. */
const PREFIXES = /^(?:\w+=.*|!|if|then|else|elif|while|until|do|exec|env|command|time|nohup|sudo)$/
const INTERPRETERS = /^(?:(?:ba|da|k|z)?sh|\.|source|node|deno|bun|tsx|ts-node|python[\d.]*|ruby|perl|php)$/

/** Programs that start another one, as in `npx tsx server.ts` and `uv run server.py`. */
const LAUNCHERS = /^(?:npx|npm|pnpx|pnpm|yarn|bunx|uvx?|pipx|poetry)$/
const SCRIPT_NAME = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|(?:ba|z)?sh)$/i

/**
 * Returns the words of a call that name what runs: the program and, if it is an interpreter or a launcher, its scripts,
 * those that it loads first included (`node --import ./setup.mjs server.mjs`).
 */
function listPrograms(call: readonly string[]): readonly string[] {
  const [program = '', ...rest] = skipPrefixes(call)
  if (program === '') return []
  const named = [program, ...listDefiningFiles(basename(program), rest)]
  const scripts = rest.map((word) => word.replace(/^-[^=]*=/, '')).filter((word) => SCRIPT_NAME.test(word))
  if (LAUNCHERS.test(basename(program))) return [...named, ...scripts]
  if (!INTERPRETERS.test(basename(program))) return named
  const script = rest.find((word) => !word.startsWith('-') && word !== 'run')
  return [...named, ...(script === undefined ? [] : [script]), ...scripts]
}

function skipPrefixes(call: readonly string[]): readonly string[] {
  return call.slice(call.findIndex((word) => !PREFIXES.test(word)))
}

const PACKAGE_RUNNER = /^(?:npm|pnpm|yarn|bun)$/
const MAKE = /^g?make$/
const PYTHON_RUNNER = /^(?:python[\d.]*|uv|poetry)$/
const FOLDER_OPTIONS = ['-C', '--directory', '--prefix', '--dir', '--cwd']

/** Returns the files in which a program looks up the name that it is given: a script, a target or a module. */
function listDefiningFiles(program: string, rest: readonly string[]): readonly string[] {
  const inFolder = (name: string): string => join(readOption(rest, FOLDER_OPTIONS) ?? '.', name)
  if (PACKAGE_RUNNER.test(program) || (program === 'node' && readOption(rest, ['--run']) !== null))
    return [inFolder('package.json')]
  if (MAKE.test(program)) {
    const own = readOption(rest, ['-f', '--file', '--makefile'])
    return (own === null ? ['GNUmakefile', 'makefile', 'Makefile'] : [own]).map(inFolder)
  }
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
