/** Tier 2: the summary that replaces a conversation. */
import { count, flag, listOf, name, oneOf, orNull, percent, text } from '../check.ts'
import { type Fields, field } from '../field.ts'

export type Sheddable = 'skills' | 'files' | 'agents' | 'deltas'

export interface TargetPolicy {
  /** Per cent of the auto-compact line that a compacted view may fill. */
  readonly percentOfAutoCompact: number
  /** What goes first when a view is above its target. Nothing else is ever shed. */
  readonly shed: readonly Sheddable[]
  /** Newest skills that shedding leaves. */
  readonly keptSkills: number
}

/** Which rungs may be tried, from the one that keeps most to the one that cannot fail. */
export interface ChainPolicy {
  /** The provider's own summary block, where kept messages carry bound thinking. */
  readonly block: boolean
  /** A fork that reads the parent's cache; skipped while the cache is cold. */
  readonly fork: boolean
  /** The summary made without a model: as the `last` rung, as the `only` one, or `never`. */
  readonly local: 'last' | 'only' | 'never'
}

export interface DirectPolicy {
  /** Another model, usually a cheaper one; null takes the conversation's own. */
  readonly model: string | null
  /** Tokens the summary may take. */
  readonly outputTokens: number
  /** Further attempts after the first. */
  readonly retries: number
}

/** When the summariser says that the prompt is too long. */
export interface HeadDropPolicy {
  readonly retries: number
  /** Per cent of the rounds to drop where the provider does not say how many tokens are too many … */
  readonly percentOfRounds: number
  /** … but at least this many. */
  readonly minimumRounds: number
}

/** While a summary is under way. */
export interface WaitingPolicy {
  /** Seconds between two signs of life. */
  readonly keepAliveSeconds: number
  /** Seconds without anything arriving after which an attempt has failed. */
  readonly stallSeconds: number
  /** Seconds that one attempt may take in all. */
  readonly attemptSeconds: number
}

export interface CompactPolicy {
  readonly target: TargetPolicy
  readonly chain: ChainPolicy
  readonly direct: DirectPolicy
  readonly headDrop: HeadDropPolicy
  readonly waiting: WaitingPolicy
  /** Added to the instructions of every compaction, automatic ones too; blank adds none. */
  readonly instructions: string
  /** Characters of custom instructions, the hooks' included; a provider's own block takes 16,384 for all. */
  readonly instructionCharacters: number
  /** A summary is accepted only below this per cent of the size of what it replaces. */
  readonly maximumPercentOfReplaced: number
  /** Tokens that pinned records may take in all; those beyond, oldest first, are summarised, and it is told. */
  readonly pinTokens: number
  /** Prepare a summary in the background from the warning line on, and swap it in at a safe point. */
  readonly background: boolean
  /** Where nothing forces a compaction, let price choose between now and later. */
  readonly priceDecides: boolean
  /** Put what did not change in front of the summary, where it stays cached. */
  readonly carriersFirst: boolean
}

const shed: readonly Sheddable[] = ['skills', 'files', 'agents', 'deltas']

export const compactFields: Fields<CompactPolicy> = {
  target: {
    percentOfAutoCompact: field(50, percent(1, 95)),
    shed: field(shed, listOf(oneOf('skills', 'files', 'agents', 'deltas'))),
    keptSkills: field(1, count()),
  },
  chain: {
    block: field(true, flag()),
    fork: field(true, flag()),
    local: field('last', oneOf('last', 'only', 'never')),
  },
  direct: {
    model: field(null, orNull(name())),
    outputTokens: field(20_000, count(500)),
    retries: field(2, count(0, 20)),
  },
  headDrop: {
    retries: field(3, count(0, 20)),
    percentOfRounds: field(20, percent(1, 100)),
    minimumRounds: field(1, count(1)),
  },
  waiting: {
    keepAliveSeconds: field(30, count(1)),
    stallSeconds: field(120, count(1)),
    attemptSeconds: field(600, count(1)),
  },
  instructions: field('', text()),
  instructionCharacters: field(8_000, count()),
  maximumPercentOfReplaced: field(100, percent(1, 100)),
  pinTokens: field(20_000, count()),
  background: field(true, flag()),
  priceDecides: field(true, flag()),
  carriersFirst: field(false, flag()),
}
