/** After a prompt that was too long: less of the head, or parts where the window is known to be far too small. */
import type { AskFailure } from './ask.ts'
import { roomFor } from './chain-asks.ts'
import { type Chain, summarisedOf, summariserOf, tokensIn } from './chain-state.ts'
import { dropHead } from './head-drop.ts'
import { splitParts } from './parts.ts'
import { answerTokens } from './summariser.ts'

/** The chain with what to try next. */
export function afterOverflow(chain: Chain, gap: AskFailure['gap']): Chain {
  const { policy } = chain.context
  const learnt = gap?.limit !== undefined && gap.limit > 0 ? { ...chain, window: gap.limit } : chain
  const isFork = chain.stage === 'fork'
  // Another model has another window: what the conversation's own said is nothing to it.
  if (isFork && chain.context.direct.model !== chain.context.own.model) return { ...chain, stage: 'direct' }
  const saved = isFork ? savedByStripping(chain) : 0
  const over = gap?.over === undefined ? null : gap.over - saved
  if (isFork && isShortEnough(chain, over, saved)) return { ...chain, stage: 'direct' }
  const isFar = over !== null && over * 2 > tokensIn(chain, chain.material) && learnt !== chain
  const parted = isFar ? inParts(learnt) : chain
  // One part alone would be what has just failed.
  if ((parted.parts?.parts.length ?? 0) > 1) return parted
  if (chain.drops >= policy.headDrop.retries) return { ...chain, stage: 'local' }
  const shorter = withoutHead(chain, withAnswer(learnt, over))
  return shorter.stage === 'local' ? withoutHead(chain, over) : shorter
}

/**
 * What has to go for the answer to fit as well, where the window is learnt: one that is cut off is another call lost.
 * An answer may be as long as it likes and seldom is: half of the window is for the conversation in any case.
 */
function withAnswer(chain: Chain, over: number | null): number | null {
  const room = roomFor(chain)
  if (over === null || room === null || chain.window === null) return over
  return Math.max(over, tokensIn(chain, chain.material) - Math.max(room, Math.floor(chain.window / 2)))
}

/** Stripping alone made up for what was too much. */
function isShortEnough(chain: Chain, over: number | null, saved: number): boolean {
  if (over !== null) return over <= 0
  const room = roomFor(chain)
  return saved > 0 && room !== null && tokensIn(chain, chain.material) <= room
}

function savedByStripping(chain: Chain): number {
  return Math.max(0, tokensIn(chain, chain.context.span.input) - tokensIn(chain, chain.material))
}

/** What was dropped had shown nothing, so that the request is still the one that failed: more has to go. */
export function withLessStill(chain: Chain): Chain {
  return withoutHead({ ...chain, drops: chain.drops - 1 }, null)
}

function withoutHead(chain: Chain, over: number | null): Chain {
  const { policy, tokensOf } = chain.context
  const drop = dropHead(chain.material, { over, tokensOf, policy: policy.headDrop })
  if (drop === null || summarisedOf(chain, drop.rest).length === 0) return { ...chain, stage: 'local' }
  return {
    ...chain,
    stage: 'direct',
    material: drop.rest,
    covered: [...chain.covered, ...summarisedOf(chain, drop.dropped)],
    drops: chain.drops + 1,
  }
}

/** Estimates may be low by this much before a part no longer fits. */
const MARGIN = 0.9

/** Only what is to be summarised is split: what is kept was shown for context alone. */
export function inParts(chain: Chain): Chain {
  const summariser = summariserOf(chain)
  const { tokensOf } = chain.context
  const { outputTokens } = summariser
  // Thinking that cannot be turned off takes its room beside the answer.
  const room = roomFor(chain, answerTokens(summariser) - Math.min(outputTokens, answerTokens(summariser)))
  const wanted = new Set(summarisedOf(chain, chain.material).map((entry) => entry.record.uuid))
  const entries = chain.material.filter((entry) => wanted.has(entry.record.uuid))
  const tokens = Math.floor((room ?? 0) * MARGIN)
  const split = splitParts(entries, { tokens, outputTokens, tokensOf })
  if (split === null) return { ...chain, stage: 'local' }
  const { parts, covered } = split
  return {
    ...chain,
    stage: 'parts',
    covered: [...chain.covered, ...summarisedOf(chain, covered)],
    parts: { parts, asked: 0, summaries: [], outputTokens: split.outputTokens },
  }
}
