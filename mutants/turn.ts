/** Rules of hooks, permissions, tool order and branches. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

export const mutants: readonly Mutant[] = [
  {
    name: 'refused-call-runs',
    law: 'denies a call: the tool does not run',
    file: 'packages/core/src/turn/turn-hooks.ts',
    find: 'return { call, refused: refuseCall(decided.reason), events, context, endTurn }',
    replace: 'return { call, refused: null, events, context, endTurn }',
    tests: ['test/library/hooks'],
  },
  {
    name: 'allowing-hook-lifts-a-ban',
    law: 'does not lift a ban',
    file: 'packages/core/src/turn/turn-hooks.ts',
    find: "if (checked.decision === 'deny' || hooked === null) return checked",
    replace: 'if (hooked === null) return checked',
    tests: ['test/library/hooks'],
  },
  {
    name: 'question-without-an-answer-allows',
    law: 'without an answer the call is refused',
    file: 'packages/core/src/turn/turn-hooks.ts',
    find: "if (endTurn !== null || answer?.decision !== 'allow')",
    replace: "if (endTurn !== null || answer?.decision === 'deny')",
    tests: ['test/library/hooks'],
  },
  {
    name: 'blocked-prompt-is-sent',
    law: 'blocks a prompt',
    file: 'packages/core/src/turn/turn.ts',
    find: "if ('ok' in hooked) return hooked",
    replace: "if ('ok' in hooked) return null",
    tests: ['test/library/hooks'],
  },
  {
    name: 'unsafe-tools-run-together',
    law: 'run one after another, unless their tools say that it is safe',
    file: 'packages/core/src/turn/run-tools.ts',
    find: 'const isParallel = each.isCut || isParallelTool(each.call.name)',
    replace: 'const isParallel = each.isCut || isParallelTool(each.call.name) || true',
    tests: ['test/library/typed-tools'],
  },
  {
    name: 'rewind-into-the-middle-of-a-message',
    law: 'goes back to before a message',
    file: 'packages/core/src/turn/switch-branch.ts',
    find: 'parentUuid: readUuid(session, session.parents.at(start))',
    replace: 'parentUuid: readUuid(session, start)',
    tests: ['test/library/branches'],
  },
  {
    name: 'moves-are-not-branches',
    law: 'is still there when the session is opened again',
    file: 'packages/core/src/log/branch-switch.ts',
    find: 'return isPrompt(record) || isBranchSwitch(record)',
    replace: 'return isPrompt(record)',
    tests: ['test/library/branches'],
  },
  {
    name: 'fork-pays-for-its-parent',
    law: 'costs nothing by itself',
    file: 'packages/core/src/cost/session-cost.ts',
    find: 'if (record.forkedFrom !== undefined) return money',
    replace: '',
    tests: ['test/library/branches'],
  },
]
