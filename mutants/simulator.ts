/** The simulator's control API, request log and coder: each rule of them broken, and the test that must notice. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const CONTROL = ['packages/simulator/test/control-api.test']
const CODER_CLIENTS = ['packages/simulator/test/coder-clients.test']
const REQUEST_LOG = ['packages/simulator/test/request-log.test']

export const mutants: readonly Mutant[] = [
  {
    name: 'responses-in-a-row-not-merged-for-chat',
    law: 'are accepted for every state of every session',
    file: 'packages/wire/src/openai/chat-request.ts',
    find: `      if (messageAt(index - 1)?.message.role === 'assistant') return []
      return [toAssistantMessage(listRun(messageAt, index), dialect)]`,
    replace: '      return [toAssistantMessage([message], dialect)]',
    tests: ['packages/simulator/test/openai-agreement.test'],
  },
  {
    name: 'pages-of-other-sites-are-answered',
    law: 'of another site cannot',
    file: 'packages/simulator/src/server/admit-request.ts',
    find: 'if (origin !== null && (',
    replace: "if (origin === '' && (",
    tests: CONTROL,
  },
  {
    name: 'any-host-is-the-simulator',
    law: 'of another site cannot',
    file: 'packages/simulator/src/server/admit-request.ts',
    find: "return !name.includes('.') ||",
    replace: "return name !== '' ||",
    tests: CONTROL,
  },
  {
    name: 'bodies-are-read-to-the-end',
    law: 'is refused before the rest of it is read',
    file: 'packages/simulator/src/server/request-body.ts',
    find: 'if (bytes > limit) return null',
    replace: 'if (bytes > limit * 2) return null',
    tests: CONTROL,
  },
  {
    name: 'large-bodies-are-handled-at-once',
    law: 'is handled in turns, between which other requests are',
    file: 'packages/simulator/src/server/pauses.ts',
    find: '() => setImmediate(true)',
    replace: 'async () => setImmediate !== undefined',
    tests: ['packages/simulator/test/large-bodies.test'],
  },
  {
    name: 'depth-is-not-checked',
    law: 'nested too deeply',
    file: 'packages/simulator/src/protocol/value-readers.ts',
    find: 'depth <= MAX_JSON_DEPTH',
    replace: 'depth <= MAX_JSON_DEPTH * 1_000_000',
    tests: CONTROL,
  },
  {
    name: 'forgotten-requests-are-not-counted',
    law: 'is said, together with how many records are gone',
    file: 'packages/simulator/src/request-log/request-log.ts',
    find: 'forgotten += 1',
    replace: 'forgotten += 0',
    tests: CONTROL,
  },
  {
    name: 'compared-by-the-whole-prefix',
    law: 'explains a changed system.0',
    file: 'packages/simulator/src/request-log/explain-miss.ts',
    find: 'messages > best.messages ||',
    replace: 'common > best.common ||',
    tests: REQUEST_LOG,
  },
  {
    name: 'answers-that-never-begin-keep-the-thread',
    law: 'the response can be continued again',
    file: 'packages/simulator/src/server/handle-messages.ts',
    find: 'abandon: () => state.threads.release(continues)',
    replace: 'abandon: () => undefined',
    tests: ['packages/simulator/test/threads.test'],
  },
  {
    name: 'the-coder-ignores-failed-edits',
    law: 'reads a file that must be read first',
    file: 'packages/simulator/src/scripts/coder-client.ts',
    find: "(place.repair === 'again' || !hasFailed)",
    replace: "(place.repair !== 'again' || !hasFailed)",
    tests: CODER_CLIENTS,
  },
  {
    name: 'the-coder-trusts-changes-whose-results-it-never-saw',
    law: 'failed just before a compaction',
    file: 'packages/simulator/src/scripts/coder-client.ts',
    find: 'if (isCompacted && attempts.length === 0)',
    replace: 'if (isCompacted && attempts.length < 0)',
    tests: CODER_CLIENTS,
  },
  {
    name: 'the-coder-forgets-calls-of-a-response-that-broke-off',
    law: 'makes the calls that are missing where a response broke off',
    file: 'packages/simulator/src/scripts/coder-client.ts',
    find: 'return isCompacted ? [] : [{ place',
    replace: 'return index >= 0 ? [] : [{ place',
    tests: CODER_CLIENTS,
  },
  {
    name: 'requests-for-a-title-move-the-coder',
    law: 'do not change where the coder stands',
    file: 'packages/simulator/src/scripts/coder.ts',
    find: 'if (client === null && !hasOwnTools(request.tools))',
    replace: 'if (client === null && hasOwnTools(request.tools))',
    tests: CODER_CLIENTS,
  },
]
