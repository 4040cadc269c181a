/** The rules of notes and of compactions with them, each with code broken so that a test must notice. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const COMPACT = 'packages/core/src/compaction/compact-with-notes.ts'
const COMPACT_TESTS = ['packages/core/src/compaction/compact-with-notes.test']
const EXTRACT = 'packages/core/src/background/extract-notes.ts'
const UPDATE = 'packages/core/src/background/update-notes.ts'
const UPDATE_TESTS = ['packages/core/src/background/update-notes.test']
const PROMPT = 'packages/core/src/notes/extraction-prompt.ts'
const FOLDER = 'packages/tidemark/src/storage/notes-folder.ts'
const FOLDER_TESTS = ['packages/tidemark/src/testing/port-cases.test']

export const mutants: readonly Mutant[] = [
  {
    name: 'notes-used-by-manual-compactions',
    law: 'manual compactions',
    file: COMPACT,
    find: "if (trigger !== 'auto' || cause === 'reactive'",
    replace: "if (cause === 'reactive'",
    tests: COMPACT_TESTS,
  },
  {
    name: 'notes-of-unknown-coverage-used',
    law: 'coverage of a record',
    file: COMPACT,
    find: 'if (entries.at(place)?.record.uuid === coveredUuid) return',
    replace: 'if (entries.at(place) !== undefined) return',
    tests: COMPACT_TESTS,
  },
  {
    name: 'what-notes-do-not-cover-left-out',
    law: 'are all that the notes do not cover',
    file: COMPACT,
    find: 'let start = Math.max(uncovered, floor)',
    replace: 'let start = Math.max(entries.length, floor)',
    tests: COMPACT_TESTS,
  },
  {
    name: 'kept-messages-grow-without-end',
    law: 'grow no further than the largest size',
    file: COMPACT,
    find: 'if (tokens > 0 && tokens + size > maximum) break',
    replace: 'if (tokens < 0) break',
    tests: COMPACT_TESTS,
  },
  {
    name: 'five-messages-not-kept',
    law: 'by tokens and by number',
    file: COMPACT,
    find: '(tokens < minimum || messages < minimumMessages)',
    replace: 'tokens < minimum && messages < minimumMessages',
    tests: COMPACT_TESTS,
  },
  {
    name: 'running-update-not-waited-for',
    law: 'is waited for, at most 15 seconds',
    file: COMPACT,
    find: 'if (!isRunning || clock.now() >= until || isTurnAborted(turn)) return',
    replace: 'return',
    tests: COMPACT_TESTS,
  },
  {
    name: 'dead-update-waited-for',
    law: 'it is dead',
    file: COMPACT,
    find: 'const isRunning = since !== null && clock.now() - since < deadAfterSeconds * 1000',
    replace: 'const isRunning = since !== null && deadAfterSeconds > 0',
    tests: COMPACT_TESTS,
  },
  {
    name: 'notes-that-trigger-again-accepted',
    law: 'a result that may reach the threshold',
    file: 'packages/core/src/compaction/fit-draft.ts',
    find: "const hasLimit = span.form === 'full' || request.notesText !== undefined",
    replace: "const hasLimit = span.form === 'full'",
    tests: COMPACT_TESTS,
  },
  {
    name: 'blocked-compaction-goes-on-with-a-summary',
    law: 'may block',
    file: COMPACT,
    find: 'return isBlocked ? end : null',
    replace: 'return null',
    tests: COMPACT_TESTS,
  },
  {
    name: 'lost-thinking-not-told',
    law: 'lose their thinking',
    file: COMPACT,
    find: 'if (lost === 0) return plan',
    replace: 'if (lost >= 0) return plan',
    tests: COMPACT_TESTS,
  },
  {
    name: 'other-files-edited-with-the-notes',
    law: 'gets an error for anything else',
    file: PROMPT,
    find: 'named !== path || ',
    replace: '',
    tests: UPDATE_TESTS,
  },
  {
    name: 'answer-that-was-cut-off-stored',
    law: 'that was cut off',
    file: EXTRACT,
    find: "if (reply.message.stop_reason === 'max_tokens' || reply.cutInputs.length > 0)",
    replace: 'if (reply.cutInputs.length > 0)',
    tests: UPDATE_TESTS,
  },
  {
    name: 'stopped-update-stored',
    law: 'that nobody waits for any more',
    file: EXTRACT,
    find: '  if (isTurnAborted(turn)) return ABORTED\n',
    replace: '',
    tests: UPDATE_TESTS,
  },
  {
    name: 'secrets-written-down',
    law: 'writes no secrets down',
    file: EXTRACT,
    find: 'checkNotes(redact(notes), input.template, limits)',
    replace: 'checkNotes(notes, input.template, limits)',
    tests: UPDATE_TESTS,
  },
  {
    name: 'notes-without-their-sections-stored',
    law: 'that loses sections',
    file: 'packages/core/src/notes/notes-limits.ts',
    find: 'if (count !== 1)',
    replace: 'if (count > 1)',
    tests: UPDATE_TESTS,
  },
  {
    name: 'tool-calls-not-counted-before-an-update',
    law: 'not with fewer than three tool calls',
    file: UPDATE,
    find: 'if (calls >= leastCalls && expected >= leastTokens) return true',
    replace: 'if (expected >= leastTokens) return true',
    tests: UPDATE_TESTS,
  },
  {
    name: 'update-after-another-has-covered-all',
    law: 'what another process has just covered',
    file: UPDATE,
    find: 'if (!isNotesUpdateDue(at, turn.host, compaction, stored)) return stored',
    replace: 'if (!isNotesUpdateDue(at, turn.host, compaction, null)) return stored',
    tests: UPDATE_TESTS,
  },
  {
    name: 'live-claim-taken-over',
    law: 'of many that claim at once',
    file: FOLDER,
    find: 'if (!isDead(seen)) return null',
    replace: 'if (seen.token === mine.token) return null',
    tests: FOLDER_TESTS,
  },
  {
    name: 'claim-of-another-released',
    law: 'a claim counts as dead after its time',
    file: FOLDER,
    find: 'if ((await readClaimFile(files, path))?.token === token) await files.remove(path)',
    replace: 'if (token !== null) await files.remove(path)',
    tests: FOLDER_TESTS,
  },
  {
    name: 'failed-update-tried-at-every-response',
    law: 'that fail are not asked for again',
    file: 'packages/tidemark/src/session/session-notes.ts',
    find: 'if (last !== undefined) notes.triedUuid =',
    replace: 'if (last === undefined) notes.triedUuid =',
    tests: ['test/library/notes.test'],
  },
]
