/** Loads a script from a scenario file, from a module, or by the name of a built-in script. */
import { readFile } from 'node:fs/promises'
import { basename, extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isObject } from '../protocol/messages-request.ts'
import { BUILT_IN_SCRIPT_NAMES, findNamedScript, type LoadScriptResult } from './built-in-scripts.ts'
import { parseScenario } from './parse-scenario.ts'
import { playScenario } from './scenario.ts'
import type { Script } from './script.ts'

const SCENARIO_EXTENSIONS = new Set(['.json', '.yaml', '.yml'])
const MODULE_EXTENSIONS = new Set(['.mjs', '.js', '.ts', '.mts'])

/**
 * Loads a scenario (`.yaml`, `.yml`, `.json`), a module whose default export is a script (`.mjs`, `.js`, `.ts`,
 * `.mts`), or a built-in script by name with its options, such as `coder?turns=40`. Does not throw if loading fails:
 * `message` is then one line with the file, the position in it, and what was expected.
 *
 * @example
 * const loaded = await loadScenario('login.yaml')
 * if (!loaded.ok) throw new Error(loaded.message)
 * const simulator = createSimulator({ script: loaded.script })
 */
export async function loadScenario(reference: string): Promise<LoadScriptResult> {
  const kind = extname(reference).toLowerCase()
  if (SCENARIO_EXTENSIONS.has(kind)) return loadScenarioFile(reference)
  if (MODULE_EXTENSIONS.has(kind)) return loadModule(reference)
  const named = findNamedScript(reference)
  if (named.ok || BUILT_IN_SCRIPT_NAMES.includes(reference.split('?', 1)[0] ?? '')) return named
  return loadFailure(
    `${reference}: expected a .yaml, .json, .mjs, .js or .ts file, or one of ${BUILT_IN_SCRIPT_NAMES.join(', ')}`,
  )
}

function loadFailure(message: string): LoadScriptResult {
  return { ok: false, message: message.replaceAll(/\s*\n\s*/g, ' ') }
}

async function loadScenarioFile(path: string): Promise<LoadScriptResult> {
  const read = await readContent(path)
  if (!read.ok) return read
  const parsed = parseScenario(read.content, basename(path))
  if (parsed.ok) return { ok: true, script: playScenario(parsed.scenario) }
  const [first = '', ...more] = parsed.problems
  return loadFailure(more.length === 0 ? first : `${first} (and ${more.length} more)`)
}

async function readContent(
  path: string,
): Promise<{ readonly ok: true; readonly content: string } | Extract<LoadScriptResult, { ok: false }>> {
  try {
    return { ok: true, content: await readFile(path, 'utf8') }
  } catch (error) {
    return { ok: false, message: `${path}: ${describeReadError(error)}` }
  }
}

function describeReadError(error: unknown): string {
  const code = isObject(error) ? error.code : undefined
  if (code === 'ENOENT') return 'there is no such file'
  return code === 'EISDIR' ? 'is a folder, not a file' : `cannot be read: ${errorMessage(error)}`
}

async function loadModule(path: string): Promise<LoadScriptResult> {
  const read = await readContent(path)
  if (!read.ok) return read
  try {
    const loaded: unknown = await import(pathToFileURL(resolve(path)).href)
    const script = isObject(loaded) ? loaded.default : undefined
    if (isScript(script)) return { ok: true, script }
    return loadFailure(`${path}: expected a default export that is a function (request, context) => reply`)
  } catch (error) {
    return loadFailure(`${path}: cannot be loaded: ${errorMessage(error)}`)
  }
}

/** Checks only that the value is a function. Its replies can be checked only when it is called. */
function isScript(value: unknown): value is Script {
  return typeof value === 'function'
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
