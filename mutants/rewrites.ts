/** The rules of committing a rewrite, each with code broken so that a crash, a second writer or a chain must notice. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const TESTS = 'test/rewrites'

export const mutants: readonly Mutant[] = [
  {
    name: 'compaction-committed-in-two-batches',
    law: 'before or after and never between',
    file: 'packages/core/src/compaction/commit-draft.ts',
    find: 'const failure = yield* appendLinkedRecords(turn, valid.records)',
    replace:
      'const failure = (yield* appendLinkedRecords(turn, valid.records.slice(0, 2))) ?? (yield* appendLinkedRecords(turn, valid.records.slice(2)))',
    tests: [`${TESTS}/crash.test`],
  },
  {
    name: 'words-said-meanwhile-left-out',
    law: 'words stand behind the summary',
    file: 'packages/core/src/compaction/draft.ts',
    find: '...late.filter(isVisibleToModel)].map',
    replace: '...late.slice(0, 0)].map',
    tests: ['test/rewrites/concurrent-acts.test'],
  },
  {
    name: 'words-said-meanwhile-put-in-front',
    law: 'an append stands behind the summary',
    file: 'packages/core/src/compaction/draft.ts',
    find: '[...span.unanswered, ...late.filter(isVisibleToModel)]',
    replace: '[...late.filter(isVisibleToModel), ...span.unanswered]',
    tests: [`${TESTS}/two-writers.test`],
  },
  {
    name: 'draft-of-an-older-view-committed',
    law: 'it is refused as superseded',
    file: 'packages/core/src/compaction/draft.ts',
    find: 'return rewrites === seen.rewrites && entries.extends(seen.entries)',
    replace: 'return rewrites.length >= 0 || entries.extends(seen.entries)',
    tests: [`${TESTS}/two-writers.test`],
  },
  {
    name: 'undone-act-forgotten-by-a-draft',
    law: 'that was undone again',
    file: 'packages/core/src/compaction/draft.ts',
    find: 'rewrites === seen.rewrites && entries.extends(seen.entries)',
    replace: 'rewrites.length === seen.rewrites.length && entries.extends(seen.entries)',
    tests: [`${TESTS}/two-writers.test`],
  },
  {
    name: 'list-that-was-tried-out-has-no-other-heir',
    law: 'an append stands behind the summary',
    file: 'packages/core/src/log/persistent-collections.ts',
    find: 'return line !== null && other.length <= shared',
    replace: 'return line === this.#line && other.length <= shared',
    tests: [`${TESTS}/two-writers.test`],
  },
  {
    name: 'attachment-out-of-date-kept-beside-the-new-one',
    law: 'once each',
    file: 'packages/core/src/compaction/draft.ts',
    find: 'kept: listKeptUuids(span).filter((uuid) => !gone.has(uuid))',
    replace: 'kept: listKeptUuids(span).filter((uuid) => !gone.has(uuid) || uuid.length > 0)',
    tests: ['test/rewrites/rewrite-chain.test'],
  },
  {
    name: 'pins-not-asked-by-a-compaction',
    law: 'byte for byte',
    file: 'packages/core/src/compaction/plan-compaction.ts',
    find: 'budgetTokens: policy.compact.pinTokens',
    replace: 'budgetTokens: 0',
    tests: ['test/rewrites/rewrite-chain.test'],
  },
  {
    name: 'pinned-response-stands-last',
    law: 'does not end the run when an automatic compaction leaves it last',
    file: 'packages/core/src/compaction/draft.ts',
    find: "return findLastRole(kept) === 'assistant' &&",
    replace: "return findLastRole(kept) === 'system' &&",
    tests: ['test/library/going-on'],
  },
  {
    name: 'repeated-call-loses-its-result',
    law: 'shown with their results',
    file: 'packages/core/src/context/tool-pairing.ts',
    find: 'renamed.set(block.id, id)',
    replace: 'renamed.set(id, id)',
    tests: ['test/library/going-on'],
  },
]
