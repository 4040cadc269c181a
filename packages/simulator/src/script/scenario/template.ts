/** `{{turn}}` and the like in the texts of a scenario. */
import type { JsonObject } from '../../api.ts'
import { prose } from '../prose.ts'
import { lastResults, lastUserText } from '../said.ts'
import type { ScriptContext, ScriptRequest } from '../script.ts'

/** Values of a name; `argument` is what stands behind it, as in `{{words 200}}`. */
export type Variables = Readonly<Record<string, (argument: string) => string>>

export function variablesOf(
  request: ScriptRequest,
  context: ScriptContext,
  own: Readonly<Record<string, string>>,
): Variables {
  const given = Object.entries(own).map(([name, value]) => [name, () => value] as const)
  return {
    turn: () => String(context.turn + 1),
    request: () => String(context.index + 1),
    model: () => request.model,
    user: () => lastUserText(request.messages),
    result: (tool) =>
      lastResults(request.messages).findLast(({ name }) => tool === '' || name === tool)?.text ?? '',
    now: () => new Date(context.now).toISOString(),
    random: (below) => String(Math.floor(context.random() * (Number(below) || 1_000_000))),
    words: (tokens) => prose(`words/${context.index}`, Number(tokens) || 10),
    ...Object.fromEntries(given),
  }
}

/** The names that every scenario has. */
export const KNOWN_NAMES = ['turn', 'request', 'model', 'user', 'result', 'now', 'random', 'words'] as const

/** A backslash before it keeps `{{` as it is. */
const PLACEHOLDER = /\\\{\{|\{\{\s*([A-Za-z_]\w*)(?:\s+([^{}]*?))?\s*\}\}/g

export function fill(text: string, variables: Variables): string {
  return text.replaceAll(PLACEHOLDER, (whole, name: string | undefined, argument: string | undefined) =>
    name === undefined ? '{{' : (variables[name]?.(argument ?? '') ?? whole),
  )
}

export function fillAll(input: JsonObject, variables: Variables): JsonObject {
  const filled: unknown = JSON.parse(JSON.stringify(input), (_key, value: unknown) =>
    typeof value === 'string' ? fill(value, variables) : value,
  )
  // The same shape with other strings.
  return filled as JsonObject
}

/** Names in a text that are not among those known. */
export function unknownNames(text: string, known: ReadonlySet<string>): readonly string[] {
  return [...text.matchAll(PLACEHOLDER)].flatMap(([, name]) =>
    name === undefined || known.has(name) ? [] : [name],
  )
}
