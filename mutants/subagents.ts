/** Subagents and clean-ups of the agent: each rule of them broken, and the test that must notice. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const AGENT = 'packages/agent/src/agent'
const SINGLE = ['packages/agent/test/subagents.test']
const TEAMS = ['packages/agent/test/subagent-teams.test']
const CLEANUPS = ['packages/agent/test/rewrite-cleanups.test']

export const mutants: readonly Mutant[] = [
  {
    name: 'definition-widens-the-tools',
    law: 'has no tool for questions and plans, and none that its definition does not name',
    file: `${AGENT}/agent-options.ts`,
    find: 'return inherited.isOffered(name) && canAgentUseTool(inherited.definition, name)',
    replace: 'return canAgentUseTool(inherited.definition, name)',
    tests: SINGLE,
  },
  {
    name: 'definition-used-without-trust',
    law: 'counts only after trust, and no longer when it has changed',
    file: `${AGENT}/agent-definitions.ts`,
    find: "file.origin === 'user' || isTrusted(",
    replace: "file.origin !== 'none' || isTrusted(",
    tests: SINGLE,
  },
  {
    name: 'trust-in-a-definition-ignores-its-text',
    law: 'counts only after trust, and no longer when it has changed',
    file: `${AGENT}/agent-definitions.ts`,
    find: 'JSON.stringify([matter, body])',
    replace: 'JSON.stringify([matter])',
    tests: SINGLE,
  },
  {
    name: 'subagent-leaves-plan-mode',
    law: 'is limited to reading if it was started in plan mode, also after the plan was approved',
    file: `${AGENT}/agent-permissions.ts`,
    find: "return isPlanning ? 'plan' : starter.mode",
    replace: "return isPlanning && starter.mode === 'plan' ? 'plan' : starter.mode",
    tests: SINGLE,
  },
  {
    name: 'subagents-ask-at-the-same-time',
    law: 'is asked about in its name, one question at a time',
    file: `${AGENT}/agent-permissions.ts`,
    find: 'const answer = last.then(ask)',
    replace: 'const answer = ask()',
    tests: SINGLE,
  },
  {
    name: 'guard-hooks-left-out-in-subagents',
    law: 'is guarded by the hooks of tool calls, and hooks hear of its start and end',
    file: `${AGENT}/agent.ts`,
    find: "  'PreToolUse',",
    replace: "  'SessionEnd',",
    tests: SINGLE,
  },
  {
    name: 'compaction-of-a-subagent-forgets-nothing',
    law: 'all finish; the one that overflows compacts its own context, and nothing else changes',
    file: `${AGENT}/agent.ts`,
    find: "const scope = inherited === undefined ? 'main' : source",
    replace: "const scope = source === '' ? source : 'main'",
    tests: TEAMS,
  },
  {
    name: 'result-told-again-after-a-kill',
    law: 'a result that the conversation has is not told again, although a kill came before that was stored',
    file: `${AGENT}/subagents.ts`,
    find: 'readToolResultText(block.content) === result',
    replace: 'readToolResultText(block.content) === result.toUpperCase()',
    tests: TEAMS,
  },
  {
    name: 'turn-ends-before-the-agents-in-the-background',
    law: 'are waited for at the end of the turn, and each result is told once',
    file: `${AGENT}/subagents.ts`,
    find: 'if (undelivered.length === 0) return undefined',
    replace: 'if (undelivered.length >= 0) return undefined',
    tests: TEAMS,
  },
  {
    name: 'rules-of-a-command-outlive-it',
    law: 'rules of a slash command end when the conversation goes back to before it, not with a compaction',
    file: `${AGENT}/agent-permissions.ts`,
    find: "if (kind === 'undo' || kind === 'rewind') forgetRules()",
    replace: "if (kind === 'none') forgetRules()",
    tests: CLEANUPS,
  },
  {
    name: 'plan-mode-runs-tools-of-servers',
    law: 'in plan mode a tool of a server runs only if it says that it reads, also in a subagent',
    file: `${AGENT}/permissions.ts`,
    find: 'access.isReadOnly !== true',
    replace: 'access.isReadOnly === undefined',
    tests: CLEANUPS,
  },
  {
    name: 'changed-skill-not-noticed',
    law: 'is read again when it was changed in place, with as many bytes and the old time',
    file: 'packages/tidemark/src/sources/prompt-files.ts',
    find: '[dev, ino, size, mtimeNs, ctimeNs]',
    replace: '[dev, ino, size, mtimeNs]',
    tests: ['packages/tidemark/src/sources/prompt-files.test'],
  },
  {
    name: 'untrusted-definition-hides-a-trusted-one',
    law: 'the trusted definition of a project is not hidden',
    file: 'packages/agent/src/agent/agent-definitions.ts',
    find: 'const usable = all.filter(mayUse)',
    replace:
      'const usable = all.filter(({ name }, index) => all.findIndex((one) => one.name === name) === index).filter(mayUse)',
    tests: ['packages/agent/test/subagent-teams'],
  },
]
