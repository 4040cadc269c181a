/** What people and hooks want of a summary, put together: the person's words first, bounded, blank ones left out. */

export interface InstructionSources {
  /** Given with the request for this compaction. */
  readonly person?: string | undefined
  /** Given for every compaction, in the policy. */
  readonly policy?: string | undefined
  readonly hooks?: readonly string[]
}

export interface Instructions {
  /** Null where nobody wants anything. */
  readonly text: string | null
  /** Characters that did not fit and were left out, from the end: the person's go last. */
  readonly cutCharacters: number
}

export const NO_INSTRUCTIONS: Instructions = { text: null, cutCharacters: 0 }

/** At most `characters` of them, counted as people count: a pair of surrogates is never parted. */
export function composeInstructions(
  { person, policy, hooks = [] }: InstructionSources,
  characters: number,
): Instructions {
  const given = [person, policy, ...hooks].flatMap((text) =>
    text === undefined || text.trim() === '' ? [] : [text.trim()],
  )
  return boundInstructions(given.join('\n\n'), characters)
}

export function boundInstructions(text: string, characters: number): Instructions {
  const all = [...text]
  const kept = all.slice(0, characters).join('').trim()
  const cutCharacters = Math.max(0, all.length - characters)
  return kept === '' ? { text: null, cutCharacters: all.length } : { text: kept, cutCharacters }
}
