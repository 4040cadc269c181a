/** System prompt, tools and parameters as a log says they stand: what a session is compacted with unless its host is there. */
import type { EpochSection, JsonObject, Offered, PlacedSection, SessionState } from '@tidemark/core'

export interface LogPrefix {
  readonly sections: readonly PlacedSection[]
  /** Null where the log has none. */
  readonly offered: Offered | null
}

export function prefixOfLog({ told }: SessionState): LogPrefix {
  const { standing } = told
  if (standing === null) return { sections: [], offered: null }
  const { epoch, parameters } = standing
  const { sections, model } = epoch
  const tools = toolsNow(epoch.tools, told.tools)
  return { sections: sectionsNow(sections, told.sections), offered: { tools, model, parameters } }
}

type Told = SessionState['told']

function sectionsNow(sections: readonly EpochSection[], changed: Told['sections']): readonly PlacedSection[] {
  const known = new Set(sections.map(({ name }) => name))
  const added = [...changed].flatMap(([name, text]): readonly EpochSection[] =>
    known.has(name) || text === null ? [] : [{ name, text, part: 'dynamic' }],
  )
  return [...sections, ...added].map(({ name, part, text }) => ({
    name,
    part,
    compute: () => (changed.has(name) ? (changed.get(name) ?? null) : text),
    volatileBecause: part === 'volatile' ? 'as the log has it' : null,
  }))
}

function toolsNow(tools: readonly JsonObject[], changed: Told['tools']): readonly JsonObject[] {
  const kept = tools.filter(({ name }) => !changed.has(String(name)))
  const added = [...changed.values()].flatMap(({ definition }) => (definition === null ? [] : [definition]))
  return changed.size === 0 ? tools : [...kept, ...added]
}
