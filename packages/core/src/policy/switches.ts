/** Switches in environment variables, and which mechanisms are on. The host passes the variables; nothing is read here. */
import type { Policy, SwitchPolicy } from './policy.ts'

export type SwitchName =
  | 'DISABLE_COMPACT'
  | 'DISABLE_AUTO_COMPACT'
  | 'DISABLE_MICROCOMPACT'
  | 'ENABLE_PROMPT_CACHING_1H'
  | 'ENABLE_PROMPT_CACHING_1H_BEDROCK'
  | 'FORCE_PROMPT_CACHING_5M'
  | 'DISABLE_PROMPT_CACHING'

/** The second is the name other tools use; ours wins if both hold a percentage. */
type PercentName = 'TIDEMARK_AUTOCOMPACT_PCT' | 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE'

export interface Switches {
  /** The switches that are set. */
  readonly set: readonly SwitchName[]
  /** Percentage of the effective window for the auto-compact threshold, or null. */
  readonly autoCompactPercent: number | null
}

/** A variable with an invalid value: reported to the user once and ignored. */
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
  const expectsSwitch = '1, true, yes or on to set it, 0, false, no or off not to'
  const expectsPercent = 'a number above 0 and at most 100, as in 80'
  const notices = [
    ...names
      .filter((name) => ![...on, ...off].includes(word(environment[name])))
      .map((name) => notice(name, environment[name] ?? '', expectsSwitch)),
    ...percentNames
      .filter((name) => word(environment[name]) !== '' && percentOf(environment[name]) === null)
      .map((name) => notice(name, environment[name] ?? '', expectsPercent)),
  ]
  return { switches, notices }
}

function word(value: string | undefined): string {
  return (value ?? '').trim().toLowerCase()
}

/** 0 < n ≤ 100 in decimal notation, or null. */
function percentOf(value: string | undefined): number | null {
  const digits = word(value)
  const percent = /^(\d+\.?\d*|\.\d+)$/.test(digits) ? Number(digits) : Number.NaN
  return percent > 0 && percent <= 100 ? percent : null
}

function notice(variable: SwitchName | PercentName, value: string, expected: string): SwitchNotice {
  const message = `${variable} is ${JSON.stringify(value)} and was ignored: expected ${expected}.`
  return { variable, value, message }
}

// Which mechanisms are on, and for those that are off the switch or field that turned them off, so that errors can name it.

/**
 * `clear` is tier 1, provider-side clearing included. `notes` is taking notes; compacting with them is part of `auto`.
 * `reactive` is automatic too, so it is off whenever `auto` is.
 */
type Mechanism = 'clear' | 'auto' | 'reactive' | 'manual' | 'notes' | 'caching'

/** `because`: an environment variable or the path of a policy field. */
type MechanismState = { readonly on: true } | { readonly on: false; readonly because: string }

type MechanismStates = Readonly<Record<Mechanism, MechanismState>>

/** The first cause in each list is reported: environment before settings, the broadest first. */
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
