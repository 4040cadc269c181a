/** From stage to stage of the chain, until there is something to ask or nothing left to try. */
import { blocksOf } from '../conversation/block.ts'
import type { Payload } from '../view/payload.ts'
import type { Ask, ChainStep, Done } from './ask.ts'
import {
  blockAsk,
  directAsk,
  forkAsk,
  joinAsk,
  localAsk,
  type Made,
  partAsk,
  replacedTokens,
} from './chain-asks.ts'
import { ended, failed, keyOf, together } from './chain-end.ts'
import { inParts, withLessStill } from './chain-overflow.ts'
import { type Chain, type Stage, stepped } from './chain-state.ts'

export function isDone(next: Ask | Done): next is Done {
  return 'done' in next
}

/** Goes on from stage to stage until there is something to ask, or nothing left. */
export function settled(chain: Chain): Chain {
  if (chain.stage === 'failed') return { ...chain, next: failed(chain) }
  if (chain.stage === 'together' || (chain.stage === 'join' && chain.parts?.summaries.length === 1))
    return unjoined(chain)
  const made = MAKERS[chain.stage](chain)
  if ('skip' in made) return settled(skipped(chain, made))
  if (chain.drops > 0 && isSame(chain.next, made)) return settled(withLessStill(chain))
  const key = keyOf(chain, made)
  if (chain.asked.includes(key)) return settled(skipped(chain, ASKED_BEFORE))
  const calls = chain.calls + (made.kind === 'local' ? 0 : 1)
  return { ...chain, next: made, calls, asked: [...chain.asked, key] }
}

/** A retry after a drop that would send what has just failed. */
function isSame(before: Ask | Done, ask: Ask): boolean {
  if (isDone(before) || before.kind !== 'direct' || ask.kind !== 'direct' || ask.part !== null) return false
  return saying(before.payload) === saying(ask.payload)
}

/** A string and one text block say the same. */
function saying({ model, messages }: Payload): string {
  return JSON.stringify([model, messages.map(({ role, content }) => [role, blocksOf(content)])])
}

const ASKED_BEFORE = { skip: 'asked-before', message: 'It was asked before.' }

/** One part alone, or several that nobody put together: the summary all the same, if it is small enough. */
function unjoined(chain: Chain): Chain {
  const summary = together(chain)
  const { policy, tokensOfText } = chain.context
  const isSmall = tokensOfText(summary) * 100 < replacedTokens(chain) * policy.maximumPercentOfReplaced
  if (!isSmall) return settled({ ...chain, stage: 'local' })
  return { ...chain, next: ended(chain, { summarizer: 'model', summary, block: null }) }
}

type Asking = Exclude<Stage, 'failed' | 'together'>

const MAKERS: Readonly<Record<Asking, (chain: Chain) => Made<Ask>>> = {
  block: blockAsk,
  fork: forkAsk,
  direct: directAsk,
  parts: partAsk,
  join: joinAsk,
  local: localAsk,
}

const RUNGS: Readonly<Record<Stage, Pick<ChainStep, 'rung' | 'kind'> & { readonly after: Stage }>> = {
  block: { rung: 0, kind: 'block', after: 'fork' },
  fork: { rung: 1, kind: 'fork', after: 'direct' },
  direct: { rung: 2, kind: 'direct', after: 'local' },
  parts: { rung: 3, kind: 'direct', after: 'local' },
  join: { rung: 3, kind: 'direct', after: 'local' },
  together: { rung: 3, kind: 'direct', after: 'local' },
  local: { rung: 4, kind: 'local', after: 'failed' },
  failed: { rung: 4, kind: 'local', after: 'failed' },
}

function skipped(
  chain: Chain,
  { skip, message }: { readonly skip: string; readonly message: string },
): Chain {
  const { rung, kind, after } = RUNGS[chain.stage]
  const next = stepped(chain, { rung, kind, outcome: 'skipped', reason: skip, message })
  if (chain.stage !== 'direct' || skip !== 'window-too-small') return { ...next, stage: after }
  return inParts({ ...next, fallbackReason: next.fallbackReason ?? 'prompt_too_long' })
}
