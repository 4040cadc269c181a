/** The rules of `take` and `fetch`, each with code broken so that a test of a host must notice. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const HABITS = 'test/drop-in/host-habits'
const FETCH = 'test/drop-in/host-fetch'
const TAKE = 'test/drop-in/take'
const PARTS = 'packages/tidemark/src/session/conversation-parts.ts'
const HISTORY = 'packages/tidemark/src/session/host-history.ts'
const EXCHANGE = 'packages/tidemark/src/session/host-exchange.ts'

export const mutants: readonly Mutant[] = [
  {
    name: 'calls-of-a-host-matched-by-bytes',
    law: 'may add defaults to the inputs of its calls',
    file: PARTS,
    find: 'return a.id === b.id && a.name === b.name',
    replace: 'return formatWithoutMarker(a) === formatWithoutMarker(b)',
    tests: [HABITS],
  },
  {
    name: 'edited-result-of-a-host-ignored',
    law: 'and edits the result of a tool gets a branch',
    file: HISTORY,
    find: '&& formatResult(old) === formatResult(now)',
    replace: '&& formatResult(old) !== null',
    tests: [HABITS],
  },
  {
    name: 'hidden-change-of-a-host-becomes-a-branch',
    law: 'a change of what the model is no longer shown needs no branch',
    file: HISTORY,
    find: 'const end = shared <= hidden ? findTail(known, given, hidden, isSame) : null',
    replace: 'const end = shared > hidden ? findTail(known, given, hidden, isSame) : null',
    tests: [FETCH],
  },
  {
    name: 'system-blocks-of-a-host-joined',
    law: 'keeps the blocks of its system prompt apart',
    file: 'packages/core/src/request/prefix-snapshot.ts',
    find: 'if (blocks.length > 0)',
    replace: 'if (blocks.length > 99)',
    tests: [HABITS],
  },
  {
    name: 'clock-of-a-host-told-with-the-whole-prompt',
    law: 'the model is told the time in one line',
    file: 'packages/core/src/request/system-prompt.ts',
    find: "const lines = isHostBlock(name) ? formatChangedLines(before, text ?? '') : null",
    replace: 'const lines = null as string | null',
    tests: [HABITS],
  },
  {
    name: 'lifetime-of-a-host-dropped',
    law: 'keeps the lifetime that its cache markers ask for',
    file: 'packages/core/src/request/cache-ttl.ts',
    find: "return { name: requested, because: 'host' }",
    replace: 'return null',
    tests: [HABITS],
  },
  {
    name: 'refused-request-not-sent-as-the-host-wrote-it',
    law: 'what the provider takes directly is answered',
    file: EXCHANGE,
    find: 'return retryUnchanged(conversation, call, failure)',
    replace: 'return abandon(conversation, response, text)',
    tests: [FETCH],
  },
  {
    name: 'overflow-of-a-host-not-recovered',
    law: 'that the provider finds too long all the same is compacted',
    file: EXCHANGE,
    find: "if (refused.ok && refused.act === 'changed' && changes < MAX_CHANGES) continue",
    replace: "if (refused.ok && refused.act === 'changed' && changes > MAX_CHANGES) continue",
    tests: [FETCH],
  },
  {
    name: 'bound-thinking-given-to-a-host',
    law: 'is open on a model that binds thinking to its context',
    file: 'packages/tidemark/src/session/host-thinking.ts',
    find: "return model.choice.profile.thinking.binding === 'prefix' && isContextChanged(state)",
    replace: 'return false && isContextChanged(state) && model.choice.id === ""',
    tests: [FETCH],
  },
  {
    name: 'prefill-of-a-host-taken',
    law: 'says that an assistant message at the end is to be sent as it is',
    file: 'packages/tidemark/src/session/take.ts',
    find: "if (news.at(-1)?.role === 'assistant')",
    replace: "if (news.at(-1)?.role === 'system')",
    tests: [TAKE],
  },
  {
    name: 'opening-of-a-host-not-pinned',
    law: 'the rules and the environment of the first request stay verbatim',
    file: 'packages/tidemark/src/session/take.ts',
    find: "if (type === 'user') await pinSessionRecord(session, uuid, true)",
    replace: "if (type === 'user') await pinSessionRecord(session, uuid, false)",
    tests: ['test/drop-in/compacted-host'],
  },
  {
    name: 'unrepeated-messages-cached',
    law: 'the next request will not repeat the end: nothing is written that is not read',
    file: 'packages/core/src/request/cache-markers.ts',
    find: 'return repeatedUntil !== null && compareMarkerPlaces(place, repeatedUntil) <= 0',
    replace: 'return true',
    tests: ['packages/core/test/prompt/markers'],
  },
  {
    name: 'delta-of-a-host-taken-twice',
    law: 'is recovered from an overflow that was not foreseen',
    file: 'packages/tidemark/src/session/take.ts',
    find: 'matchHistory(state, request.messages, last?.uuid)',
    replace: 'matchHistory(state, request.messages), news: request.messages, divergesAt: null, change: null',
    tests: ['test/drop-in/compacted-host'],
  },
]
