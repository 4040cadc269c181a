/** What stands in front of a trace's conversation, as the engine knows it: sections of a system prompt. */
import { type Front, frontOf } from '@tidemark/core'

export interface FrontSection {
  readonly part: 'static' | 'dynamic'
  readonly text: string
  readonly tokens: number
}

/** `found`: what the first call read. It was left by others, so it ends where what they share ends. */
export function frontSections(base: number, found: number): readonly FrontSection[] {
  const shared = Math.min(found, base)
  const parts: readonly FrontSection[] = [
    { part: 'static', text: 'static part', tokens: shared },
    { part: 'dynamic', text: 'dynamic part', tokens: base - shared },
  ]
  return parts.filter(({ tokens }) => tokens > 0)
}

export function frontFor(model: string, sections: readonly FrontSection[]): Front {
  const epoch = {
    model,
    tools: [],
    parameters: {},
    sections: sections.map(({ part, text }) => ({ name: part, part, text })),
  }
  return frontOf({ uuid: 'trace', epoch, parameters: {}, isFresh: false })
}
