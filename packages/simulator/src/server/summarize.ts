/** The provider's own summaries: one call of the model over the whole conversation, then a block in its place. */
import { type Block, textField } from '../api.ts'
import { type CacheOutcome, consult } from '../cache/prompt-cache.ts'
import type { CacheSplit } from '../cache/split.ts'
import type { CompactionSeal } from '../context/signature.ts'
import { digest } from '../digest.ts'
import { textTokens } from '../tokenizer.ts'
import type { Headers } from './account.ts'
import { type Asked, askScript } from './ask-script.ts'
import type { Prepared } from './prepare.ts'
import type { Iteration } from './usage.ts'
import type { World } from './world.ts'

/** Used unless the request gives instructions of its own, which replace it. */
export const SUMMARY_PROMPT =
  'Summarise the conversation so far so that the work can go on from the summary alone: the task, the decisions, the state of things, what was learnt and what comes next. Answer with text only, inside <summary></summary> tags.'

export interface Summary {
  /** Null where the call brought no summary. */
  readonly text: string | null
  readonly stopReason: string
  readonly iteration: Iteration
  readonly asked: Asked
  readonly cache: CacheOutcome
}

export interface SummaryCall {
  readonly instructions: string | null
  readonly headers: Headers
  readonly number: number
  readonly now: number
}

export async function summarize(world: World, prepared: Prepared, call: SummaryCall): Promise<Summary> {
  const custom = call.instructions?.trim() ? call.instructions : null
  const instructions = custom ?? SUMMARY_PROMPT
  const added = textTokens(instructions)
  const { prompt, key, shown, model } = prepared
  const question = { kind: 'compaction', instructions, pieces: shown, prompt, added } as const
  const { headers, number, now } = call
  const cache = consult(world.store, { prompt, key, minimum: model.cacheMinimum, now, request: number })
  const asked = await askScript(world, prepared, { question, headers, number })
  const { output } = asked
  const written = output.blocks
    .filter((block) => block.type === 'text')
    .map((block) => textField(block, 'text'))
  const finished = output.stopReason === 'end_turn' && written.join('').trim() !== ''
  return {
    text: finished ? summaryIn(written.join('\n'), custom === null) : null,
    stopReason: finished ? 'compaction' : output.stopReason,
    iteration: { split: withInput(cache.split, added), outputTokens: output.tokens },
    asked,
    cache,
  }
}

function withInput(split: CacheSplit, added: number): CacheSplit {
  return { ...split, input: split.input + added }
}

/** The provider's own prompt asks for tags; what other prompts ask for is theirs. */
function summaryIn(text: string, tagged: boolean): string {
  const inside = tagged ? text.match(/<summary>([\s\S]*?)<\/summary>/)?.[1] : undefined
  return (inside ?? text).trim()
}

/** The signed block of an on-demand compaction. */
export function signedBlock(world: World, prepared: Prepared, summary: string): Block {
  const { model, scope, walk: walked, compaction, sent } = prepared
  const walk = walked()
  const before = compaction?.seal
  world.walker.remember(walk.behindAll)
  const seal: CompactionSeal = {
    kind: 'compaction',
    id: world.ids.next('cmp'),
    organization: scope.organization,
    content: digest(summary),
    toolChanges: digest(JSON.stringify([])),
    preserves: model.binding === 'prefix',
    system: walk.system,
    tools: walk.tools,
    messages: walk.behindAll.chain,
    lastRole: lastRole(sent),
    replaced: before === null || before === undefined ? [] : [before.id, ...before.replaced],
  }
  return { type: 'compaction', content: summary, signature: world.sealer.seal(seal) }
}

function lastRole(sent: Prepared['sent']): string {
  return sent.findLast((piece) => piece.role !== 'system')?.role ?? 'user'
}
