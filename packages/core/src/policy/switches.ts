import type { Policy, SwitchPolicy } from './policy.ts'

/** The off switches and the like that people set in the environment. Reading is pure: the host hands over the variables. */
export type SwitchName =
  | 'DISABLE_COMPACT'
  | 'DISABLE_AUTO_COMPACT'
  | 'DISABLE_MICROCOMPACT'
  | 'ENABLE_PROMPT_CACHING_1H'
  | 'ENABLE_PROMPT_CACHING_1H_BEDROCK'
  | 'FORCE_PROMPT_CACHING_5M'
  | 'DISABLE_PROMPT_CACHING'

/** The second is the name people have from elsewhere; ours wins where both hold a percentage. */
type PercentName = 'TIDEMARK_AUTOCOMPACT_PCT' | 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE'

export interface Switches {
  /** Those that are set. */
  readonly set: readonly SwitchName[]
  /** Per cent of effective for the auto-compact line, or null. */
  readonly autoCompactPercent: number | null
}

/** A variable that says something nobody understands: told to the person once, and ignored. */
interface SwitchNotice {
  readonly variable: SwitchName | PercentName
  readonly value: string
  readonly message: string
}

interface SwitchReading {
  readonly switches: Switches
  readonly notices: readonly SwitchNotice[]
}

export const NO_SWITCHES: Switches = { set: [], autoCompactPercent: null }

type Environment = Readonly<Record<string, string | undefined>>

const names: readonly SwitchName[] = [
  'DISABLE_COMPACT',
  'DISABLE_AUTO_COMPACT',
  'DISABLE_MICROCOMPACT',
  'ENABLE_PROMPT_CACHING_1H',
  'ENABLE_PROMPT_CACHING_1H_BEDROCK',
  'FORCE_PROMPT_CACHING_5M',
  'DISABLE_PROMPT_CACHING',
]
const percentNames: readonly PercentName[] = ['TIDEMARK_AUTOCOMPACT_PCT', 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE']
const on: readonly string[] = ['1', 'true', 'yes', 'on']
const off: readonly string[] = ['', '0', 'false', 'no', 'off']

export function readSwitches(environment: Environment): SwitchReading {
  const percents = percentNames.map((name) => percentOf(environment[name]))
  const switches: Switches = {
    set: names.filter((name) => on.includes(word(environment[name]))),
    autoCompactPercent: percents.find((percent) => percent !== null) ?? null,
  }
  return { switches, notices: [...switchNotices(environment), ...percentNotices(environment)] }
}

function word(value: string | undefined): string {
  return (value ?? '').trim().toLowerCase()
}

/** 0 < n ≤ 100 in plain decimals, or null. */
function percentOf(value: string | undefined): number | null {
  const digits = word(value)
  const percent = /^(\d+\.?\d*|\.\d+)$/.test(digits) ? Number(digits) : Number.NaN
  return percent > 0 && percent <= 100 ? percent : null
}

function switchNotices(environment: Environment): readonly SwitchNotice[] {
  return names
    .filter((name) => ![...on, ...off].includes(word(environment[name])))
    .map((name) =>
      notice(name, environment[name] ?? '', '1, true, yes or on to set it, 0, false, no or off not to'),
    )
}

function percentNotices(environment: Environment): readonly SwitchNotice[] {
  return percentNames
    .filter((name) => word(environment[name]) !== '' && percentOf(environment[name]) === null)
    .map((name) => notice(name, environment[name] ?? '', 'a number above 0 and at most 100, as in 80'))
}

function notice(variable: SwitchName | PercentName, value: string, expected: string): SwitchNotice {
  const message = `${variable} is ${JSON.stringify(value)} and was ignored: expected ${expected}.`
  return { variable, value, message }
}

// What is on, and where it is not, which switch is the cause: a refusal must be able to name it.

/**
 * `clear` is tier 1, the provider's own way included. `notes` is keeping them; compacting with them is part of
 * `auto`. `reactive` starts by itself, so it is off where `auto` is.
 */
type Mechanism = 'clear' | 'auto' | 'reactive' | 'manual' | 'notes' | 'caching'

/** `because` is an environment variable or the path of a policy field. */
type MechanismState = { readonly on: true } | { readonly on: false; readonly because: string }

type MechanismStates = Readonly<Record<Mechanism, MechanismState>>

/** The first of a list that is off is the one named: environment before settings, the widest first. */
export function mechanismStates(policy: Policy, switches: Switches): MechanismStates {
  const variable = (name: SwitchName): Cause => [name, switches.set.includes(name)]
  const setting = (name: keyof SwitchPolicy): Cause => [`switches.${name}`, !policy.switches[name]]
  const [all, every] = [variable('DISABLE_COMPACT'), setting('compactEnabled')]
  const auto = [all, variable('DISABLE_AUTO_COMPACT'), every, setting('autoCompactEnabled')]
  return {
    clear: state([all, variable('DISABLE_MICROCOMPACT'), every, setting('microcompactEnabled')]),
    auto: state(auto),
    reactive: state([...auto, ['turn.reactive.enabled', !policy.turn.reactive.enabled]]),
    manual: state([all, every]),
    notes: state([all, every, ['notes.enabled', !policy.notes.enabled]]),
    caching: state([variable('DISABLE_PROMPT_CACHING'), setting('promptCachingEnabled')]),
  }
}

type Cause = readonly [because: string, isOff: boolean]

function state(causes: readonly Cause[]): MechanismState {
  const cause = causes.find(([, isOff]) => isOff)
  return cause === undefined ? { on: true } : { on: false, because: cause[0] }
}
