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
  {
    name: 'tour-claims-what-it-did-not-check',
    law: 'a statement about what survived is marked as false if it is not true',
    file: 'packages/cli/src/tour/tour-checks.ts',
    find: 'request.includes(FIRST_PROMPT),',
    replace: 'true,',
    tests: ['packages/cli/src/tour/tour.test'],
  },
  {
    name: 'tour-model-skips-a-step-after-a-refusal',
    law: 'gives a request that is sent again the same reply again',
    file: 'packages/cli/src/tour/tour-job.ts',
    find: 'done = Math.max(done, countSteps(request.messages))',
    replace: 'done = Math.max(done + 1, countSteps(request.messages))',
    tests: ['packages/cli/src/tour/tour-job.test'],
  },
  {
    name: 'blobs-only-of-the-current-home',
    law: 'has the whole large result of a session in any home',
    file: 'packages/tidemark/src/logs/log-blobs.ts',
    find: 'return own === null || own === current ? [current] : [own, current]',
    replace: 'return own === null ? [current] : [current]',
    tests: ['packages/cli/test/large-results'],
  },
  {
    name: 'copied-log-without-its-blobs',
    law: 'writes has the large results of the session',
    file: 'packages/tidemark/src/logs/log-blobs.ts',
    find: 'await store.put(bytes)',
    replace: 'await Promise.resolve(bytes)',
    tests: ['packages/cli/test/large-results'],
  },
  {
    name: 'deleted-blob-that-another-session-has',
    law: 'delete keeps the large results that another session has too',
    file: 'packages/tidemark/src/logs/log-blobs.ts',
    find: 'ids.delete(mentioned)',
    replace: 'ids.has(mentioned)',
    tests: ['packages/cli/test/large-results'],
  },
  {
    name: 'deleted-blob-though-a-log-is-unreadable',
    law: 'if another session cannot be read or is in use',
    file: 'packages/tidemark/src/logs/log-blobs.ts',
    find: 'return { ids: why === null ? [...ids] : [], why }',
    replace: 'return { ids: [...ids], why }',
    tests: ['packages/cli/test/large-results'],
  },
  {
    name: 'telemetry-with-content-unasked',
    law: 'is in no span and no metric unless the host asks for it',
    file: 'packages/tidemark/src/telemetry/index.ts',
    find: 'content = false',
    replace: 'content = true',
    tests: ['test/library/telemetry-faults'],
  },
  {
    name: 'telemetry-that-breaks-a-turn',
    law: 'changes nothing: spans that throw',
    file: 'packages/tidemark/src/telemetry/trace-scope.ts',
    find: `    return work()
  } catch (thrown) {
    reportFailure(thrown)
    return undefined
  }`,
    replace: `    return work()
  } catch (thrown) {
    reportFailure(thrown)
    throw thrown
  }`,
    tests: ['test/library/telemetry-faults'],
  },
  {
    name: 'chat-span-outside-its-compaction',
    law: 'has a span with the summary call below it',
    file: 'packages/tidemark/src/telemetry/operation-spans.ts',
    find: 'return { context: compaction.context() ?? own, source, tools: tools.running }',
    replace: 'return { context: own, source, tools: tools.running }',
    tests: ['test/library/telemetry'],
  },
  {
    name: 'invented-tools-become-attributes',
    law: 'counts calls of tools that do not exist under one name',
    file: 'packages/tidemark/src/telemetry/metrics.ts',
    find: 'return session.hasTool(name) ? name : OTHER_TOOL',
    replace: 'return session.hasTool(name) || name !== OTHER_TOOL ? name : OTHER_TOOL',
    tests: ['test/library/telemetry.test'],
  },
]
