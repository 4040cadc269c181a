/** Rules of the library's sessions: refusals, repeated messages, switches of model, slow sources. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

export const mutants: readonly Mutant[] = [
  {
    name: 'unreadable-error-repeats-the-request',
    law: 'is not given again, until the caller says more',
    file: 'packages/tidemark/src/models/client-error.ts',
    find: 'readKnownError(error, now, MAX_CAUSES) ?? createUnreadableFailure(error)',
    replace: 'readKnownError(error, now, MAX_CAUSES) ?? failureFromException(error)',
    tests: ['test/library/refused'],
  },
  {
    name: 'model-that-throws-in-its-reply-ends-the-turn',
    law: 'by throwing is asked again',
    file: 'packages/core/src/engine/call-model.ts',
    find: 'retryable: isBegun, message }',
    replace: 'retryable: false, message }',
    tests: ['packages/core/test/engine/broken-replies'],
  },
  {
    name: 'replayed-call-is-taken-as-new',
    law: 'appended again',
    file: 'packages/tidemark/src/session/replayed-messages.ts',
    find: "if (hasCall || roleBefore === 'assistant') return true",
    replace: "if (roleBefore === 'assistant') return hasCall",
    tests: ['test/library/own-loop-input'],
  },
  {
    name: 'compacted-session-is-asked-again',
    law: 'has nothing to continue, until there is a prompt',
    file: 'packages/core/src/turn/recover-refusal.ts',
    find: 'return FINISHED_STOPS.has(record.message.stop_reason)',
    replace: 'return false',
    tests: ['test/library/going-on'],
  },
  {
    name: 'tokens-of-another-tokenizer-are-compared',
    law: 'is not refused as larger',
    file: 'packages/core/src/tokens/context-meter.ts',
    find: 'meter.estimator.hasTokensOf(model) ? countContextTokens(usage) : 0',
    replace: 'countContextTokens(usage)',
    tests: ['test/library/going-on'],
  },
  {
    name: 'failed-source-is-not-on-the-receipt',
    law: 'the receipt tells why',
    file: 'packages/core/src/summary/receipt.ts',
    find: '...(leftOut.length === 0 ? {} : { leftOut })',
    replace: '...(leftOut.length >= 0 ? {} : { leftOut })',
    tests: ['test/library/slow-sources'],
  },
]
