/** The built-in scripts by name, with options: `echo`, `coder?turns=40&resultTokens=2000`, `huge`. */
import { ADVERSARY_NAMES, type AdversaryName, adversaries } from './adversarial-models.ts'
import { type CoderOptions, createCoder } from './coder.ts'
import { echo, type Script } from './script.ts'
import { summariser, withSummaries } from './summarizer.ts'

export type NamedScript =
  | { readonly ok: true; readonly script: Script }
  /** One line: what is wrong, and what was expected. */
  | { readonly ok: false; readonly message: string }

export const SCRIPT_NAMES: readonly string[] = ['echo', 'coder', 'summariser', ...ADVERSARY_NAMES]

const COUNTS = ['turns', 'files', 'resultTokens', 'textTokens', 'thinkingTokens', 'parallel'] as const
const WORDS = ['seed', 'task'] as const
const PARAMETERS: readonly string[] = [...COUNTS, ...WORDS]

/**
 * `echo` and `coder` answer a summary request with a good summary. `?summaries=` names an adversary that answers it
 * instead; with `none` it is treated like any other request.
 */
export function namedScript(reference: string): NamedScript {
  const [name = '', query = ''] = reference.split('?', 2)
  const parameters = new URLSearchParams(query)
  if (isAdversary(name)) return plain(adversaries[name], name, parameters)
  if (name === 'summariser') return plain(summariser, name, parameters)
  if (name !== 'echo' && name !== 'coder')
    return wrong(`there is no script "${name}"; there are ${list(SCRIPT_NAMES)}`)
  const summaries = parameters.get('summaries') ?? 'good'
  parameters.delete('summaries')
  const found = name === 'echo' ? plain(echo, name, parameters) : coderWith(parameters)
  return found.ok ? summing(found.script, summaries) : found
}

function wrong(message: string): NamedScript {
  return { ok: false, message }
}

function plain(script: Script, name: string, parameters: URLSearchParams): NamedScript {
  const [given] = parameters.keys()
  return given === undefined ? { ok: true, script } : wrong(`the script ${name} has no option "${given}"`)
}

function summing(script: Script, summaries: string): NamedScript {
  if (summaries === 'none') return { ok: true, script }
  if (summaries === 'good') return { ok: true, script: withSummaries(script) }
  if (isAdversary(summaries)) return { ok: true, script: withSummaries(script, adversaries[summaries]) }
  return wrong(`summaries must be good, none, or one of ${list(ADVERSARY_NAMES)}, not "${summaries}"`)
}

function coderWith(parameters: URLSearchParams): NamedScript {
  const options: { -readonly [K in keyof CoderOptions]: CoderOptions[K] } = {}
  for (const [name, value] of parameters) {
    const count = COUNTS.find((each) => each === name)
    const word = WORDS.find((each) => each === name)
    if (word !== undefined) options[word] = value
    else if (count === undefined)
      return wrong(`the script coder has no option "${name}"; it has ${list(PARAMETERS)}, summaries`)
    else if (isCount(name, value)) options[count] = Number(value)
    else return wrong(`the coder's ${name} must be a whole number, not "${value}"`)
  }
  return { ok: true, script: createCoder(options).script }
}

function isCount(name: string, value: string): boolean {
  const least = name === 'textTokens' || name === 'thinkingTokens' ? 0 : 1
  return (name === 'turns' && value === 'Infinity') || (/^\d{1,9}$/.test(value) && Number(value) >= least)
}

function isAdversary(name: string): name is AdversaryName {
  return Object.hasOwn(adversaries, name)
}

function list(names: readonly string[]): string {
  return names.join(', ')
}
