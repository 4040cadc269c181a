/** What is not as it was in the last request, messages apart; what lies earliest in the cache key comes first. */
import { markerDifferences } from './marker-differences.ts'
import { sectionDifferences, toolDifferences } from './piece-differences.ts'
import type { Difference } from './reason.ts'
import type { SentParameters, SentRequest } from './sent.ts'

export function differencesOf(before: SentRequest, after: SentRequest): readonly Difference[] {
  return [
    ...headDifferences(before.parameters, after.parameters),
    ...toolDifferences(before.tools, after.tools),
    ...sectionDifferences(before.system, after.system),
    ...parameterDifferences(before.parameters, after.parameters),
    ...markerDifferences(before.markers, after.markers),
  ]
}

/** Caches of two models, or speeds, have nothing in common. */
function headDifferences(before: SentParameters, after: SentParameters): readonly Difference[] {
  const [was, is] = [before.model, after.model]
  const model: readonly Difference[] = was === is ? [] : [{ kind: 'model-changed', before: was, after: is }]
  return [...model, ...changed('speed-changed', before.speed, after.speed)]
}

function parameterDifferences(before: SentParameters, after: SentParameters): readonly Difference[] {
  if (before === after) return []
  return [
    ...betaDifferences(before.betas ?? [], after.betas ?? []),
    ...changed('thinking-changed', before.thinking, after.thinking),
    ...changed('effort-changed', before.effort, after.effort),
    ...changed('tool-choice-changed', before.toolChoice, after.toolChoice),
    ...otherDifferences(before.others ?? {}, after.others ?? {}),
  ]
}

type PlainChange = 'speed-changed' | 'effort-changed' | 'thinking-changed' | 'tool-choice-changed'

function changed(kind: PlainChange, before?: string, after?: string): readonly Difference[] {
  return before === after ? [] : [{ kind, before: before ?? null, after: after ?? null }]
}

/** A set: the order in which betas are named is of no account. */
function betaDifferences(before: readonly string[], after: readonly string[]): readonly Difference[] {
  const added = after.filter((name) => !before.includes(name))
  const removed = before.filter((name) => !after.includes(name))
  return added.length + removed.length === 0 ? [] : [{ kind: 'betas-changed', added, removed }]
}

type Texts = Readonly<Record<string, string>>

function otherDifferences(before: Texts, after: Texts): readonly Difference[] {
  if (before === after) return []
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names
    .filter((name) => before[name] !== after[name])
    .map((name) => ({
      kind: 'parameter-changed',
      name,
      before: before[name] ?? null,
      after: after[name] ?? null,
    }))
}
