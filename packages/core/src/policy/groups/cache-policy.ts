/** The prompt cache: markers, lifetime, and what counts as a break. */
import { count, flag, listOf, name, oneOf, percent } from '../check.ts'
import { type Fields, field } from '../field.ts'

export interface MarkersPolicy {
  /** Markers in a request; the provider's own limit binds as well. */
  readonly maximum: number
  /** Mark the block before the first result that tier 1 could still clear. */
  readonly edge: boolean
  /** Positions a turn may add before it would outrun the provider's look-back and gets a lagging marker. */
  readonly laggingAfterPositions: number
}

export interface BreaksPolicy {
  /** A break is a read more than this per cent below what was expected … */
  readonly percent: number
  /** … and more than this many tokens below it. */
  readonly tokens: number
  /** Query sources watched at once; the one unused longest is let go. */
  readonly sources: number
  /** Patterns of models whose reads say nothing; small ones cache differently. */
  readonly excludedModels: readonly string[]
  /** Write what changed to a file, for debugging. */
  readonly diffFiles: boolean
  /** Ask the provider for its own explanation, where it gives one. */
  readonly askProvider: boolean
}

export interface CachePolicy {
  /** `auto` decides by the gaps and prices seen, then holds to it for the epoch. */
  readonly ttl: '5m' | '1h' | 'auto'
  /** Patterns of query sources that an entitled account gives an hour. */
  readonly oneHourSources: readonly string[]
  /** Short-lived sources: always five minutes, whatever else says. */
  readonly fiveMinuteSources: readonly string[]
  /** A changed section is appended as a `delta` till the next epoch, or rewritten `inline`, which breaks the cache. */
  readonly volatile: 'delta' | 'inline'
  readonly markers: MarkersPolicy
  readonly breaks: BreaksPolicy
}

const oneHourSources = ['repl_main_thread*', 'sdk', 'agent:*']
const fiveMinuteSources = ['session_memory', 'speculation', 'prompt_suggestion']

export const cacheFields: Fields<CachePolicy> = {
  ttl: field('auto', oneOf('5m', '1h', 'auto')),
  oneHourSources: field<readonly string[]>(oneHourSources, listOf(name())),
  fiveMinuteSources: field<readonly string[]>(fiveMinuteSources, listOf(name())),
  volatile: field('delta', oneOf('delta', 'inline')),
  markers: {
    maximum: field(4, count(1, 4)),
    edge: field(true, flag()),
    laggingAfterPositions: field(18, count(1)),
  },
  breaks: {
    percent: field(5, percent(0, 100)),
    tokens: field(2_000, count()),
    sources: field(10, count(1)),
    excludedModels: field<readonly string[]>(['*haiku*'], listOf(name())),
    diffFiles: field(true, flag()),
    askProvider: field(true, flag()),
  },
}
