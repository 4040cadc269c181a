/** Finds built-in scripts by name, with options: `echo`, `coder?turns=40&resultTokens=2000`, `huge`. */
import { BAD_SUMMARIZER_NAMES, BAD_SUMMARIZERS, type BadSummarizerName } from './bad-summarizers.ts'
import { type CoderOptions, createCoder } from './coder.ts'
import { echo, type Script } from './script.ts'
import { summarizer, withSummaries } from './summarizer.ts'

export type LoadScriptResult =
  | { readonly ok: true; readonly script: Script }
  /** The script was not loaded. `message` is one line that says what is wrong and what was expected. */
  | { readonly ok: false; readonly message: string }

export const BUILT_IN_SCRIPT_NAMES: readonly string[] = [
  'echo',
  'coder',
  'summariser',
  ...BAD_SUMMARIZER_NAMES,
]

const COUNT_OPTIONS = ['turns', 'files', 'resultTokens', 'textTokens', 'thinkingTokens', 'parallel'] as const
const TEXT_OPTIONS = ['seed', 'task'] as const
const CODER_OPTIONS: readonly string[] = [...COUNT_OPTIONS, ...TEXT_OPTIONS]

/**
 * Finds a built-in script by its name and options. Fails with a message for an unknown name or option. The option
 * `summaries` of `echo` and `coder` selects the script that answers summary requests: a good summarizer (default), a
 * bad summarizer by name, or with `none` the script itself.
 */
export function findNamedScript(reference: string): LoadScriptResult {
  const [name = '', query = ''] = reference.split('?', 2)
  const parameters = new URLSearchParams(query)
  if (isBadSummarizerName(name)) return scriptWithoutOptions(BAD_SUMMARIZERS[name], name, parameters)
  if (name === 'summariser') return scriptWithoutOptions(summarizer, name, parameters)
  if (name !== 'echo' && name !== 'coder')
    return scriptFailure(`there is no script "${name}"; there are ${joinNames(BUILT_IN_SCRIPT_NAMES)}`)
  const summaries = parameters.get('summaries') ?? 'good'
  parameters.delete('summaries')
  const found = name === 'echo' ? scriptWithoutOptions(echo, name, parameters) : createNamedCoder(parameters)
  return found.ok ? addSummaries(found.script, summaries) : found
}

function scriptFailure(message: string): LoadScriptResult {
  return { ok: false, message }
}

function scriptWithoutOptions(script: Script, name: string, parameters: URLSearchParams): LoadScriptResult {
  const [given] = parameters.keys()
  return given === undefined
    ? { ok: true, script }
    : scriptFailure(`the script ${name} has no option "${given}"`)
}

function addSummaries(script: Script, summaries: string): LoadScriptResult {
  if (summaries === 'none') return { ok: true, script }
  if (summaries === 'good') return { ok: true, script: withSummaries(script) }
  if (isBadSummarizerName(summaries))
    return { ok: true, script: withSummaries(script, BAD_SUMMARIZERS[summaries]) }
  return scriptFailure(
    `summaries must be good, none, or one of ${joinNames(BAD_SUMMARIZER_NAMES)}, not "${summaries}"`,
  )
}

function createNamedCoder(parameters: URLSearchParams): LoadScriptResult {
  const options: { -readonly [K in keyof CoderOptions]: CoderOptions[K] } = {}
  for (const [name, value] of parameters) {
    const count = COUNT_OPTIONS.find((each) => each === name)
    const word = TEXT_OPTIONS.find((each) => each === name)
    if (word !== undefined) options[word] = value
    else if (count === undefined)
      return scriptFailure(
        `the script coder has no option "${name}"; it has ${joinNames(CODER_OPTIONS)}, summaries`,
      )
    else if (isValidCount(name, value)) options[count] = Number(value)
    else return scriptFailure(`the coder's ${name} must be a whole number, not "${value}"`)
  }
  return { ok: true, script: createCoder(options).script }
}

function isValidCount(name: string, value: string): boolean {
  const least = name === 'textTokens' || name === 'thinkingTokens' ? 0 : 1
  return (name === 'turns' && value === 'Infinity') || (/^\d{1,9}$/.test(value) && Number(value) >= least)
}

function isBadSummarizerName(name: string): name is BadSummarizerName {
  return Object.hasOwn(BAD_SUMMARIZERS, name)
}

function joinNames(names: readonly string[]): string {
  return names.join(', ')
}
