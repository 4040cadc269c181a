/** The table of real clients as Markdown, one row each, and the judgement whether Tidemark did any harm. */
import { isDeepStrictEqual } from 'node:util'
import type { Client, RunCall } from './client.ts'
import type { ClientRun } from './run-client.ts'

/** The same client on the same task and window, direct and with Tidemark. */
export interface Pair {
  readonly direct: ClientRun
  readonly managed: ClientRun
  /** True if its prompts are cached without Tidemark. */
  readonly caches: boolean
  /** The final answer of the direct client in a window in which the task fits. */
  readonly expectedAnswer: string | null
  /** Number of steps of the task. */
  readonly steps: number
}

/** One client in a window in which the task does not fit, and in one in which it does. */
export interface ClientPairs {
  readonly client: Pick<Client, 'name' | 'isStream'>
  readonly small: Pair
  readonly large: Pair
}

/** Share of the direct cost by which a client that caches may be dearer. */
const COST_TOLERANCE = 0.01

/** Returns what Tidemark made worse; an empty list if nothing. */
export function findHarm({ direct, managed, caches, expectedAnswer, steps }: Pair): readonly string[] {
  const harm: string[] = []
  if (managed.error !== null && direct.error === null) harm.push(`failed: ${managed.error}`)
  if (managed.error === null && managed.answer !== expectedAnswer) harm.push('another final answer')
  if (managed.error === null && managed.steps < steps) harm.push(`${steps - managed.steps} steps lost`)
  if (managed.refused > direct.refused) harm.push(`${managed.refused} requests refused`)
  const allowed = caches ? 1 + COST_TOLERANCE : 1
  if (direct.error === null && toCostRatio(direct, managed) > allowed)
    harm.push(`dearer: ${toCostRatio(direct, managed).toFixed(4)} of the direct cost`)
  return [...harm, ...new Set(managed.changes)]
}

/** Where a client dies without Tidemark, it must not die with it. */
export function findClientHarm({ client, small, large }: ClientPairs): readonly string[] {
  const dies = small.managed.error === null ? [] : [`fails past the window: ${small.managed.error}`]
  const other = countSameCalls(small) === null ? ['other calls before the first rewrite'] : []
  const harm = [...dies, ...other, ...[small, large].flatMap(findHarm)]
  return [...new Set(harm)].map((text) => `${client.name}: ${text}`)
}

/** A server without prices is judged by its tokens, with those read from the cache at a tenth. */
function toCostRatio(direct: ClientRun, managed: ClientRun): number {
  const weigh = ({ cost, fresh, cacheWritten, cacheRead }: ClientRun): number =>
    cost > 0 ? cost : fresh + cacheWritten + cacheRead / 10
  return weigh(managed) / weigh(direct)
}

/** Returns the number of calls before the first rewrite, all as in the direct run; null if one is another. */
function countSameCalls({ direct, managed }: Pair): number | null {
  const toMeaning = ({ name, input }: RunCall): string => `${name} ${JSON.stringify(input)}`
  const count = Math.min(managed.callsBeforeRewrite ?? managed.calls.length, direct.calls.length)
  const [one, other] = [direct, managed].map(({ calls, isProcess }) => {
    const texts = calls.slice(0, count).map(toMeaning)
    // A program of its own begins the calls of one answer in any order.
    return isProcess ? texts.toSorted() : texts
  })
  return isDeepStrictEqual(one, other) ? count : null
}

const HEAD = [
  'client',
  'streams',
  'direct',
  'with Tidemark',
  'refused',
  'compactions',
  'same calls',
  'cached',
  'direct, fits',
  'cost with',
  'time, direct',
  'time, with',
]

export function formatClients(all: readonly ClientPairs[]): string {
  return formatTable(HEAD, all.map(formatClient))
}

function formatClient({ client, small, large }: ClientPairs): readonly string[] {
  const { direct, managed } = large
  const cost = direct.cost > 0 ? `$${direct.cost.toFixed(3)}` : 'no price'
  return [
    client.name,
    client.isStream === true ? 'yes' : 'no',
    formatEnd(small.direct, small),
    formatEnd(small.managed, small),
    String(small.managed.refused),
    String(small.managed.door.compactions),
    String(countSameCalls(small) ?? 'no'),
    `${(100 * toCachedShare(small.managed)).toFixed(1)} %`,
    direct.error === null ? cost : formatEnd(direct, large),
    managed.error === null ? `${toCostRatio(direct, managed).toFixed(4)} ×` : formatEnd(managed, large),
    ...[direct, managed].map(({ door }) => formatMs(pickShare(door.delays, 0.5))),
  ]
}

function formatEnd(run: ClientRun, { expectedAnswer, steps }: Pair): string {
  if (run.error !== null)
    return isTooLong(run.error)
      ? `dies at call ${run.requests}`
      : `dies at call ${run.requests}: ${run.error}`
  if (run.steps < steps) return `${run.steps} of ${steps} steps`
  return run.answer === expectedAnswer ? 'ends' : 'ends, another answer'
}

/** A prompt that does not fit, or an answer that the window cuts. */
function isTooLong(error: string): boolean {
  return /prompt is too long|context (?:window|length)|incomplete/i.test(error)
}

function toCachedShare({ cacheRead, cacheWritten, fresh }: ClientRun): number {
  return cacheRead / (cacheRead + cacheWritten + fresh)
}

/** Returns the value below which the given share of the values lies. */
function pickShare(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function formatMs(ms: number): string {
  if (Number.isNaN(ms)) return '–'
  return `${ms < 1 ? ms.toFixed(2) : ms.toFixed(0)} ms`
}

/** Texts to the left, figures to the right. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, column) => (column < 4 ? '---' : '---:'))
  return [head, rule, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}
