/**
 * Betas that edits by the provider take. They are named from the start of a session: naming them when the first
 * edit is due would itself lose the cache.
 */
import { mayPreferNative } from '../clear/way.ts'
import type { JsonObject } from '../conversation/json.ts'
import type { BetaRule, Profile } from '../policy/profile.ts'
import { betasIn } from '../prompt/epoch.ts'
import type { TurnHost } from './turn-host.ts'

/** The parameters with what the engine's own requests need beside what the host asks for. */
export function withOwnBetas(
  parameters: JsonObject,
  { policy, profile }: Pick<TurnHost, 'policy' | 'profile'>,
): JsonObject {
  if (!mayPreferNative({ policy, profile })) return parameters
  const given = betasIn(parameters)
  const missing = lacking(given, profile).flatMap(({ betas }) => betas.slice(0, 1))
  return missing.length === 0 ? parameters : { ...parameters, betas: [...given, ...new Set(missing)] }
}

/** The provider would take the edits with a request that has these parameters. */
export function namesEditBetas(parameters: JsonObject, profile: Profile): boolean {
  return lacking(betasIn(parameters), profile).length === 0
}

function lacking(named: readonly string[], { betas, contextEdits }: Profile): readonly BetaRule[] {
  const edits: readonly (string | null)[] = [contextEdits.clearThinking, contextEdits.clearToolUses]
  const isOurs = ({ where, name }: BetaRule): boolean => where === 'edit' && edits.includes(name)
  return betas.filter((rule) => isOurs(rule) && !rule.betas.some((beta) => named.includes(beta)))
}
