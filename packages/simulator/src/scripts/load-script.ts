/** A script by the name of a file or of one that comes with the simulator. */
import { readFile } from 'node:fs/promises'
import { basename, extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isObject } from '../protocol/api.ts'
import { namedScript, SCRIPT_NAMES } from './named-scripts.ts'
import { parseScenario } from './read-scenario.ts'
import { playScenario } from './scenario.ts'
import type { Script } from './script.ts'

export type LoadedScript =
  | { readonly ok: true; readonly script: Script }
  /** One line for a person: which file, where in it, what was expected. */
  | { readonly ok: false; readonly message: string }

const SCENARIOS = new Set(['.json', '.yaml', '.yml'])
const MODULES = new Set(['.mjs', '.js', '.ts', '.mts'])

/** A scenario (`.yaml`, `.json`), a module whose default export is a script (`.mjs`, `.js`, `.ts`), or a name. */
export async function loadScript(reference: string): Promise<LoadedScript> {
  const kind = extname(reference).toLowerCase()
  if (SCENARIOS.has(kind)) return loadScenario(reference)
  if (MODULES.has(kind)) return loadModule(reference)
  const named = namedScript(reference)
  if (named.ok || SCRIPT_NAMES.includes(reference.split('?', 1)[0] ?? '')) return named
  return failed(
    `${reference}: expected a .yaml, .json, .mjs, .js or .ts file, or one of ${SCRIPT_NAMES.join(', ')}`,
  )
}

function failed(message: string): LoadedScript {
  return { ok: false, message: message.replaceAll(/\s*\n\s*/g, ' ') }
}

async function loadScenario(path: string): Promise<LoadedScript> {
  const read = await contentOf(path)
  if (!read.ok) return read
  const parsed = parseScenario(read.content, basename(path))
  if (parsed.ok) return { ok: true, script: playScenario(parsed.scenario) }
  const [first = '', ...more] = parsed.problems
  return failed(more.length === 0 ? first : `${first} (and ${more.length} more)`)
}

type Content = { readonly ok: true; readonly content: string } | Extract<LoadedScript, { ok: false }>

async function contentOf(path: string): Promise<Content> {
  try {
    return { ok: true, content: await readFile(path, 'utf8') }
  } catch (error) {
    return { ok: false, message: `${path}: ${cannotRead(error)}` }
  }
}

function cannotRead(error: unknown): string {
  const code = isObject(error) ? error.code : undefined
  if (code === 'ENOENT') return 'there is no such file'
  return code === 'EISDIR' ? 'is a folder, not a file' : `cannot be read: ${messageOf(error)}`
}

async function loadModule(path: string): Promise<LoadedScript> {
  const read = await contentOf(path)
  if (!read.ok) return read
  try {
    const loaded: unknown = await import(pathToFileURL(resolve(path)).href)
    const script = isObject(loaded) ? loaded.default : undefined
    if (isScript(script)) return { ok: true, script }
    return failed(`${path}: expected a default export that is a function (request, context) => reply`)
  } catch (error) {
    return failed(`${path}: cannot be loaded: ${messageOf(error)}`)
  }
}

/** What it answers is seen when it is asked. */
function isScript(value: unknown): value is Script {
  return typeof value === 'function'
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
