/** A script that can summarize, a conversation, and a function that creates a signed compaction block. */
import type { Script } from '@tidemark/simulator'
import { assistant, postMessage, type simulate, TOOL, user } from './ask.ts'

export const MODEL = 'claude-fable-5-1'
export const BETA = 'compact-2026-09-04'
export const CONTROLS = 'thinking-binding-controls-2026-08-01'
export const WITH_COMPACTION_BETA = { betas: [BETA] }
export const REQUEST = { model: MODEL, max_tokens: 400, system: 'You help.', tools: [TOOL] }
export const COMPACT = { compaction: { type: 'summarize' } }
export const STRICT = { thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'error' } } }

export const summaryScript: Script = ({ kind, messages }) => ({
  blocks:
    kind === 'compaction'
      ? [{ type: 'text', text: '<summary>It was about looking.</summary>' }]
      : [
          { type: 'thinking', thinking: `thought ${messages.length}` },
          { type: 'text', text: `answer ${messages.length}` },
        ],
})

export const HISTORY = [user('look'), assistant('seen'), user('good')]

export async function createCompactionBlock(
  simulator: ReturnType<typeof simulate>,
  messages: readonly object[],
  base: object = REQUEST,
): Promise<object> {
  const { body } = await postMessage(simulator, { ...base, ...COMPACT, messages }, WITH_COMPACTION_BETA)
  return body.content[0]
}
