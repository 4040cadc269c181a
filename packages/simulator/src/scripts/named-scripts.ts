/** The scripts that come with the simulator, by name: `echo`, `coder?turns=40&resultTokens=2000`, `huge`. */
import { ADVERSARY_NAMES, type AdversaryName, adversaries, onSummaryRequest } from './adversarial-models.ts'
import { type CoderOptions, createCoder } from './coder.ts'
import { echo, type Script } from './script.ts'
import { summariser, withSummaries } from './summarizer.ts'

export type NamedScript =
  | { readonly ok: true; readonly script: Script }
  /** One line: what is wrong, and what would be right. */
  | { readonly ok: false; readonly message: string }

export const SCRIPT_NAMES: readonly string[] = ['echo', 'coder', 'summariser', ...ADVERSARY_NAMES]

const COUNTS = ['turns', 'files', 'resultTokens', 'textTokens', 'thinkingTokens', 'parallel'] as const
const WORDS = ['seed', 'task'] as const
const PARAMETERS: readonly string[] = [...COUNTS, ...WORDS]

/**
 * Echo and coder answer a request for a summary with a good one; `?summaries=` names an adversary to do it
 * instead, or `none` to have such a request treated like any other.
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
  const made = name === 'echo' ? plain(echo, name, parameters) : coderWith(parameters)
  return made.ok ? summing(made.script, summaries) : made
}

function wrong(message: string): NamedScript {
  return { ok: false, message }
}

function plain(script: Script, name: string, parameters: URLSearchParams): NamedScript {
  const [given] = parameters.keys()
  return given === undefined
    ? { ok: true, script }
    : wrong(`"${given}" says nothing about the script ${name}`)
}

function summing(script: Script, summaries: string): NamedScript {
  if (summaries === 'none') return { ok: true, script }
  if (summaries === 'good') return { ok: true, script: withSummaries(script) }
  if (isAdversary(summaries)) return { ok: true, script: onSummaryRequest(summaries, script) }
  return wrong(`summaries must be good, none, or one of ${list(ADVERSARY_NAMES)}, not "${summaries}"`)
}

function coderWith(parameters: URLSearchParams): NamedScript {
  const options: { -readonly [K in keyof CoderOptions]: CoderOptions[K] } = {}
  for (const [name, value] of parameters) {
    const count = COUNTS.find((each) => each === name)
    const word = WORDS.find((each) => each === name)
    if (word !== undefined) options[word] = value
    else if (count === undefined)
      return wrong(`"${name}" says nothing about the coder; it takes ${list(PARAMETERS)}, summaries`)
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
