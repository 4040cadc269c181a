/** What the host would have the prefix say, against what the model has been told. */
import type { Json, JsonObject } from '../conversation/json.ts'
import type { Profile } from '../policy/profile.ts'
import { levelOf } from './cache-key.ts'
import { betasIn, CONSTANT, type Present, toolChangeBetas } from './epoch.ts'
import type { StandingEpoch, Told } from './told.ts'
import { toolName } from './tool-order.ts'

/** Null: gone. Empty where all is as told. */
export interface Difference {
  readonly sections: Readonly<Record<string, string | null>>
  readonly tools: Readonly<Record<string, JsonObject | null>>
  /** Parameters that no cache depends on … */
  readonly free: JsonObject
  /** … and the names of those that one does. */
  readonly keyed: readonly string[]
  readonly model: { readonly from: string; readonly to: string } | null
}

export function differenceOf(
  told: Told & { readonly standing: StandingEpoch },
  present: Present,
  profile: Profile,
): Difference {
  const { epoch, parameters } = told.standing
  const changed = changedKeys(withoutOwnBetas(parameters, present, profile), present.parameters)
  return {
    sections: sectionDifference(told, present),
    tools: toolDifference(told, present),
    free: Object.fromEntries(changed.filter(([name]) => levelOf(name) === null)),
    keyed: changed.map(([name]) => name).filter((name) => levelOf(name) !== null),
    model: epoch.model === present.model ? null : { from: epoch.model, to: present.model },
  }
}

/** Betas that the epoch named on its own account are no change of the host's, and neither is their absence. */
function withoutOwnBetas(parameters: JsonObject, present: Present, profile: Profile): JsonObject {
  const given = betasIn(present.parameters)
  const own = toolChangeBetas(profile).filter((beta) => !given.includes(beta))
  const betas = betasIn(parameters).filter((beta) => !own.includes(beta))
  const { betas: _, ...rest } = parameters
  return betas.length === 0 && present.parameters.betas === undefined ? rest : { ...parameters, betas }
}

function sectionDifference(told: Told, present: Present): Difference['sections'] {
  const before = new Map<string, string | null>(
    (told.standing?.epoch.sections ?? []).map(({ name, text }) => [name, text]),
  )
  for (const [name, text] of told.sections) before.set(name, text)
  const now = new Map(present.sections.map(({ name, text }) => [name, text]))
  const names = [...new Set([...before.keys(), ...now.keys()])].filter((name) => !CONSTANT.has(name))
  const changed = names.filter((name) => (before.get(name) ?? null) !== (now.get(name) ?? null))
  return Object.fromEntries(changed.map((name) => [name, now.get(name) ?? null]))
}

function toolDifference(told: Told, present: Present): Difference['tools'] {
  const before = new Map<string, JsonObject | null>(
    (told.standing?.epoch.tools ?? []).map((tool) => [toolName(tool), tool]),
  )
  for (const [name, { definition }] of told.tools) before.set(name, definition)
  const now = new Map(present.tools.map((tool) => [toolName(tool), tool]))
  const names = [...new Set([...before.keys(), ...now.keys()])].sort()
  const changed = names.filter((name) => !sameJson(before.get(name) ?? null, now.get(name) ?? null))
  return Object.fromEntries(changed.map((name) => [name, now.get(name) ?? null]))
}

function changedKeys(before: JsonObject, now: JsonObject): readonly (readonly [string, Json])[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])]
  return names.flatMap((name) =>
    sameJson(before[name] ?? null, now[name] ?? null) ? [] : [[name, now[name] ?? null] as const],
  )
}

/** The same bytes: the order of keys counts. */
function sameJson(one: Json, other: Json): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}
