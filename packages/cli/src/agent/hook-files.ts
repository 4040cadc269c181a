/**
 * The hooks of a project as items that the user trusts: event, matcher and command, with the content of the files of the
 * project that the command runs. What those files run in turn is not followed.
 */
import { basename } from 'node:path'
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

/** Finds the files of the project that a command runs: as a program, or with an interpreter. */
export async function listRunFiles(
  { command, args }: HookCommandSettings,
  folder: string,
): Promise<readonly RunFile[]> {
  const calls = args === undefined ? splitCalls(command) : [[command, ...args]]
  const paths = new Set(calls.flatMap(listPrograms).map((word) => resolveToolPath(word, folder)))
  const found = await Promise.all(
    [...paths]
      .filter((path) => isPathWithin(path, folder))
      .map(async (path) => {
        const content = await readWholeFile(path).catch(() => null)
        return content === null ? [] : [{ path, realPath: content.realPath, hash: content.version }]
      }),
  )
  return found.flat().sort((a, b) => (a.path < b.path ? -1 : 1))
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
  const words = call.slice(call.findIndex((word) => !PREFIXES.test(word)))
  const [program = '', ...rest] = words
  if (program === '') return []
  const scripts = rest.map((word) => word.replace(/^-[^=]*=/, '')).filter((word) => SCRIPT_NAME.test(word))
  if (LAUNCHERS.test(basename(program))) return [program, ...scripts]
  if (!INTERPRETERS.test(basename(program))) return [program]
  const script = rest.find((word) => !word.startsWith('-') && word !== 'run')
  return [program, ...(script === undefined ? [] : [script]), ...scripts]
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
