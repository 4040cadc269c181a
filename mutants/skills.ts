/** Skills, slash commands and plan mode: each rule of them broken, and the test that must notice. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const SKILLS = 'packages/core/src/sources/skills.ts'
const AGENT = 'packages/agent/src/agent'
const SKILL_TESTS = ['packages/core/test/carry/skills.test']
const CHAT_SKILLS = ['packages/agent/test/skills.test']
const CHAT_COMMANDS = ['packages/agent/test/slash-commands.test']
const PLAN_TESTS = ['packages/agent/test/plan-mode.test']

export const mutants: readonly Mutant[] = [
  {
    name: 'skills-listed-again-after-a-compaction',
    law: 'attaches nothing after a compaction',
    file: SKILLS,
    find: "if (context.moment === 'compaction') return",
    replace: 'if (context.moment === undefined) return',
    tests: SKILL_TESTS,
  },
  {
    name: 'skills-listed-again-by-another-process',
    law: 'names each skill once in a branch',
    file: SKILLS,
    find: 'for (const name of Object.keys(items)) names.add(name)',
    replace: 'for (const name of Object.keys(items)) names.delete(name)',
    tests: SKILL_TESTS,
  },
  {
    name: 'skill-attached-beside-the-kept-message-that-shows-it',
    law: 'are not attached beside the kept message that shows them',
    file: SKILLS,
    find: 'uuid !== null && shown.has(uuid) ? [] : [{ name, text, path }]',
    replace: 'uuid === null ? [] : [{ name, text, path }]',
    tests: SKILL_TESTS,
  },
  {
    name: 'skill-in-use-forgotten-if-the-user-invoked-it',
    law: 'are attached as the model has read them',
    file: SKILLS,
    find: '...records.flatMap(readInvokedByUser)',
    replace: '...records.slice(0, 0).flatMap(readInvokedByUser)',
    tests: SKILL_TESTS,
  },
  {
    name: 'text-of-a-command-file-counts-as-typed',
    law: 'counts as the words of the user',
    file: 'packages/core/src/facts/user-input.ts',
    find: "const CONTENTS = 'command-contents'",
    replace: "const CONTENTS = 'contents'",
    tests: ['packages/core/src/facts/user-input-slash-commands.test'],
  },
  {
    name: 'command-file-ends-its-own-element',
    law: 'counts as the words of the user',
    file: 'packages/core/src/facts/user-input.ts',
    find: 'contents.replace(/<(?=\\/?command-contents)/gi',
    replace: 'contents.replace(/<(?=\\/?command-content-)/gi',
    tests: ['packages/core/src/facts/user-input-slash-commands.test'],
  },
  {
    name: 'shell-command-of-a-project-runs-without-trust',
    law: 'of a project runs only after trust',
    file: `${AGENT}/prompt-commands.ts`,
    find: "if (origin === 'project' && !isTrusted(item)) {",
    replace: "if (origin === 'user' && !isTrusted(item)) {",
    tests: CHAT_COMMANDS,
  },
  {
    name: 'tools-allowed-by-a-project-without-trust',
    law: 'need no permission after trust if it is the project’s',
    file: `${AGENT}/prompt-commands.ts`,
    find: "origin === 'user' ? known : known.filter(",
    replace: "origin !== 'user' ? known : known.filter(",
    tests: CHAT_COMMANDS,
  },
  {
    name: 'skill-read-through-a-link-out-of-the-project',
    law: 'outside the project are not read through a link',
    file: 'packages/tidemark/src/sources/prompt-files.ts',
    find: 'isPermitted(path) && isPermitted(real)',
    replace: 'isPermitted(path)',
    tests: CHAT_SKILLS,
  },
  {
    name: 'skill-edited-without-a-question',
    law: 'are not changed by the model without a question',
    file: `${AGENT}/protected-paths.ts`,
    find: "'.claude',",
    replace: '',
    tests: CHAT_SKILLS,
  },
  {
    name: 'command-run-in-plan-mode',
    law: 'a command is not run, whatever the rules of the user allow',
    file: `${AGENT}/permissions.ts`,
    find: "new Set(['write', 'execute'])",
    replace: "new Set(['write'])",
    tests: PLAN_TESTS,
  },
  {
    name: 'plan-mode-forgotten-when-the-session-goes-on',
    law: 'not by going on with the session in no other mode',
    file: `${AGENT}/plan-mode.ts`,
    find: "(stored ?? usual === 'plan')",
    replace: "usual === 'plan'",
    tests: PLAN_TESTS,
  },
  {
    name: 'approval-forgotten-when-the-session-goes-on',
    law: 'once: going on with the session afterwards is not in plan mode again',
    file: `${AGENT}/plan-mode.ts`,
    find: 'isOn = false\n      await write()',
    replace: 'isOn = false',
    tests: PLAN_TESTS,
  },
  {
    name: 'approved-plan-lost-at-a-compaction',
    law: 'plan mode and the approved plan are in the context after a compaction',
    file: 'packages/tidemark/src/sources/disk-sources.ts',
    find: '? planSource()',
    replace: '? planSource(async () => null)',
    tests: PLAN_TESTS,
  },
  {
    name: 'front-matter-without-an-end-read-as-text',
    law: 'its front matter has no end',
    file: 'packages/tidemark/src/sources/front-matter.ts',
    find: "return { ok: false, why: 'its front matter has no end (a line with ---)' }",
    replace: 'return { ok: true, matter: new Map(), body: text }',
    tests: ['packages/agent/test/subagents.test'],
  },
  {
    name: 'broken-front-matter-without-a-reason',
    law: 'with one line that says why',
    file: 'packages/tidemark/src/sources/front-matter.ts',
    find: "if (typeof fields === 'string') return",
    replace:
      "if (typeof fields === 'string') return { ok: true, matter: new Map(), body }\n  if (fields === '') return",
    tests: ['packages/tidemark/src/sources/prompt-files.test'],
  },
  {
    name: 'aliases-of-front-matter-followed-to-the-end',
    law: 'gives no more texts than it has',
    file: 'packages/tidemark/src/sources/front-matter.ts',
    find: 'return node.items.flatMap((item) => readScalar(yaml, document, item) ?? [])',
    replace: 'return node.items.flatMap((item) => readValue(yaml, document, item) ?? [])',
    tests: ['packages/tidemark/src/sources/front-matter.test'],
  },
]
