/** The rules of memory files, each with code broken so that a test must notice. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const FILES = 'packages/tidemark/src/sources/memory-reader.ts'
const SOURCE = 'packages/tidemark/src/sources/memory-source.ts'
const FOLDER_TESTS = ['test/library/memory-files.test']
const REMINDER_TESTS = ['test/library/memory-reminder.test']

export const mutants: readonly Mutant[] = [
  {
    name: 'memory-file-read-through-a-link-out-of-the-project',
    law: 'cannot leave the project, whatever path or link it takes',
    file: FILES,
    find: 'isPermitted(path) && isPermitted(real)',
    replace: 'isPermitted(path)',
    tests: FOLDER_TESTS,
  },
  {
    name: 'memory-of-a-folder-outside-the-project',
    law: 'outside the project does not apply',
    file: FILES,
    find: 'real === null || !isInFolder(real, project) || !isPermitted(path)',
    replace: 'real === null || !isPermitted(path)',
    tests: FOLDER_TESTS,
  },
  {
    name: 'import-followed-for-a-fifth-hop',
    law: 'is followed for four hops, once, and a cycle ends',
    file: FILES,
    find: 'into.hops >= this.#policy.importHops',
    replace: 'into.hops > this.#policy.importHops',
    tests: FOLDER_TESTS,
  },
  {
    name: 'import-of-an-untrusted-project-followed',
    law: 'of a folder that nobody trusts is not followed',
    file: FILES,
    find: "file.origin === 'user' || this.#places.followsImports",
    replace: 'true',
    tests: FOLDER_TESTS,
  },
  {
    name: 'hard-link-attached-twice',
    law: 'two names of one file give one copy',
    file: 'packages/tidemark/src/sources/disk-sources.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the code itself
    find: 'fileId: `${facts.dev}:${facts.ino}`',
    replace: 'fileId: realPath',
    tests: FOLDER_TESTS,
  },
  {
    name: 'copy-in-the-same-folder-attached-twice',
    law: 'two names of one file give one copy',
    file: FILES,
    find: ' || into.seen.has(copy)',
    replace: '',
    tests: FOLDER_TESTS,
  },
  {
    name: 'rule-applies-to-every-path',
    law: 'applies to the paths that its globs match',
    file: FILES,
    find: 'isInFolder(whole, folder) && matchesGlobs(globs, toRelative(whole, folder))',
    replace: 'isInFolder(whole, folder)',
    tests: FOLDER_TESTS,
  },
  {
    name: 'reminder-tag-left-in-a-memory-file',
    law: 'a text cannot end the reminder that it stands in',
    file: FILES,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the code itself
    find: '`${defuseReminderTags(text)}${cut}`',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the code itself
    replace: '`${text}${cut}`',
    tests: FOLDER_TESTS,
  },
  {
    name: 'root-memory-attached-again-by-folder',
    law: 'two names of one file give one copy',
    file: SOURCE,
    find: 'await reader.readRoot(seen)',
    replace: 'await reader.readRoot()',
    tests: FOLDER_TESTS,
  },
  {
    name: 'failed-call-touches-its-path',
    law: 'a call that failed touches nothing',
    file: SOURCE,
    find: 'block.is_error === true ? [] : paths',
    replace: 'paths',
    tests: FOLDER_TESTS,
  },
  {
    name: 'memory-of-a-deleted-file-stays',
    law: 'one that is deleted ends',
    file: SOURCE,
    find: 'isWhole: true',
    replace: 'isWhole: false',
    tests: FOLDER_TESTS,
  },
  {
    name: 'change-rewrites-the-reminder',
    law: 'keeps its bytes when a file changes',
    file: 'packages/tidemark/src/sources/reminder-source.ts',
    find: 'const isShown = context.shown.byKey.has(REMINDER_KEY)',
    replace: "const isShown = context.moment === 'compaction' && context.shown.byKey.has(REMINDER_KEY)",
    tests: REMINDER_TESTS,
  },
  {
    name: 'reminder-not-in-front-after-a-compaction',
    law: 'in one copy and in front',
    file: 'packages/core/src/sources/collect-sources.ts',
    find: "return kind === 'ambient' && attachment.update !== true",
    replace: "return kind === 'ambient' && attachment.update === true",
    tests: REMINDER_TESTS,
  },
  {
    name: 'appended-change-survives-the-compaction',
    law: 'leaves one current copy',
    file: 'packages/tidemark/src/sources/reminder-source.ts',
    find: 'isWhole: true',
    replace: 'isWhole: false',
    tests: REMINDER_TESTS,
  },
  {
    name: 'short-rule-cut-with-the-long-file',
    law: 'takes at most its budget',
    file: 'packages/tidemark/src/sources/reminder-source.ts',
    find: 'if (size > share) return share',
    replace: 'if (size > 0) return Math.min(share, 10)',
    tests: REMINDER_TESTS,
  },
  {
    name: 'git-runs-a-program-that-the-repository-names',
    law: 'git status is taken once',
    file: 'packages/tidemark/src/sources/memory-files.ts',
    find: "'core.fsmonitor=false'",
    replace: "'core.pager=cat'",
    tests: REMINDER_TESTS,
  },
  {
    name: 'skipped-imports-not-reported',
    law: 'are told once of an import whose file is missing',
    file: FILES,
    find: 'this.#skippedImports.set(path, { path, why })',
    replace: '',
    tests: ['packages/agent/test/memory-files.test'],
  },
]
