/** What is on, and where it is not, which switch is the cause: a refusal must be able to name it. */
import type { SwitchPolicy } from './groups/turn-policy.ts'
import type { Policy } from './policy.ts'
import type { Switches, SwitchName } from './switches.ts'

/**
 * `clear` is tier 1, the provider's own way included. `notes` is keeping them; compacting with them is part of
 * `auto`. `reactive` starts by itself, so it is off where `auto` is.
 */
export type Mechanism = 'clear' | 'auto' | 'reactive' | 'manual' | 'notes' | 'caching'

/** `because` is an environment variable or the path of a policy field. */
export type MechanismState = { readonly on: true } | { readonly on: false; readonly because: string }

export type MechanismStates = Readonly<Record<Mechanism, MechanismState>>

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
